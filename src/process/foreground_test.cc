#include "process/foreground.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "async/deadline.h"
#include "async/run_to_end.h"

namespace nodepool::process {
namespace {

constexpr std::chrono::seconds kPatience(20);

class ForegroundTest : public ::testing::Test {
 protected:
  Task<int> WithinLimit(ForegroundProcess& program) {
    return WithDeadline(loop, loop.SteadyNow() + kPatience, "the program", program.Wait());
  }
  int StatusOf(ForegroundCommand command) {
    ForegroundProcess program(loop, command);
    return RunToEnd(loop, WithinLimit(program));
  }

  Loop loop;
};

TEST_F(ForegroundTest, ReturnsTheStatusAsShellsDo) {
  EXPECT_EQ(StatusOf({.argv = {"sh", "-c", "exit 42"}}), 42);
  EXPECT_EQ(StatusOf({.argv = {"sh", "-c", "kill -TERM $$"}}), 128 + SIGTERM);
  EXPECT_EQ(StatusOf({.argv = {"/no/such/program"}}), 127);
}

TEST_F(ForegroundTest, PassesTheEnvironmentOn) {
  EXPECT_EQ(StatusOf({.argv = {"sh", "-c", "exit $N"}, .environment = {{"PATH", "/bin"}, {"N", "7"}}}), 7);
}

// What nohup does for a program: it may take a signal back, and one that does not is not ended by it.
TEST_F(ForegroundTest, InterruptionCanBeIgnored) {
  EXPECT_EQ(
      StatusOf({.argv = {"sh", "-c", "kill -INT $$; kill -TERM $$; exit 3"}, .ignores_interruption = true}),
      3);
}

TEST_F(ForegroundTest, OutputGoesToADescriptorAndInputIsEmpty) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(StatusOf({.argv = {"sh", "-c", "cat; echo out; echo err >&2"}, .output = ends[1]}), 0);
  ::close(ends[1]);
  char text[64] = {};
  EXPECT_GT(::read(ends[0], text, sizeof(text) - 1), 0);
  EXPECT_STREQ(text, "out\nerr\n");
  ::close(ends[0]);
}

TEST_F(ForegroundTest, AProgramThatIsNotAwaitedIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  { ForegroundProcess program(loop, {.argv = {"sleep", "1000"}, .output = ends[1]}); }
  ::close(ends[1]);
  char nothing;
  EXPECT_EQ(::read(ends[0], &nothing, 1), 0);  // no writer is left
  ::close(ends[0]);
}

}  // namespace
}  // namespace nodepool::process
