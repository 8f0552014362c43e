#include "process/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "async/deadline.h"
#include "async/loop.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/testing/test_environment.h"
#include "process/supervisor.h"

namespace nodepool::process {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit(20);

bool Exists(pid_t pid) { return ::kill(pid, 0) == 0; }

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The processes end without help; the test only waits.
template <class Predicate>
bool WaitFor(Predicate is_reached) {
  auto end = std::chrono::steady_clock::now() + kLimit;
  while (!is_reached()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class SystemRunnerTest : public ::testing::Test {
 protected:
  Command Shell(std::string script) {
    Command command;
    command.argv = {"sh", "-c", std::move(script)};
    command.environment = {{"PATH", "/usr/bin:/bin"}, {"D", folder}};
    command.timeout = kLimit;
    command.grace = std::chrono::milliseconds(300);
    return command;
  }
  Exit Run(Command command) { return RunToEnd(loop, runner.Run(std::move(command))); }
  Verdict VerdictOfRunning(Command command) {
    try {
      Run(std::move(command));
    } catch (const Error& error) {
      message = error.message();
      return error.verdict();
    }
    return Verdict::kRetry;
  }
  // The process whose number the script wrote to the file.
  pid_t Pid(const std::string& name) {
    std::string path = folder + "/" + name;
    EXPECT_TRUE(WaitFor([&] { return ReadFile(path).ends_with("\n"); })) << name;
    return std::atoi(ReadFile(path).c_str());
  }
  void Spawn(TaskGroup& tasks, Command command) { tasks.Spawn("run", RunQuietly(std::move(command))); }
  Task<> RunQuietly(Command command) { co_await runner.Run(std::move(command)); }

  Loop loop;
  SystemRunner runner{loop};
  testing::TemporaryFolder temporary_;
  const std::string& folder = temporary_.path();
  std::string message;
};

TEST_F(SystemRunnerTest, ReportsHowTheProgramEnded) {
  EXPECT_EQ(Run(Shell("exit 0")).code, 0);
  EXPECT_EQ(Run(Shell("exit 100")).code, 100);
  EXPECT_EQ(Run(Shell("kill -TERM $$")).code, -SIGTERM);
  EXPECT_TRUE(Run(Shell("true")).is_good());
  EXPECT_FALSE(Run(Shell("false")).is_good());
}

TEST_F(SystemRunnerTest, KeepsTheEndOfTheOutput) {
  EXPECT_EQ(Run(Shell("echo one; echo two >&2")).output, "one\ntwo\n");
  Exit exit = Run(Shell("head -c 100000000 /dev/zero; echo last"));
  EXPECT_EQ(exit.output.size(), kMaxRetainedOutput);
  EXPECT_TRUE(exit.output.ends_with("last\n"));
}

TEST_F(SystemRunnerTest, OutputIsWrittenToAFileWhileTheProgramRuns) {
  Command command = Shell("echo running; while [ ! -e $D/go ]; do sleep 0.01; done; echo end >&2");
  command.log_path = folder + "/log";
  std::ofstream(*command.log_path) << "before\n";
  std::thread watcher([&] {
    WaitFor([&] { return ReadFile(*command.log_path) == "before\nrunning\n"; });
    std::ofstream(folder + "/go");
  });
  Exit exit = Run(command);
  watcher.join();
  EXPECT_EQ(exit.code, 0);
  EXPECT_EQ(exit.output, "");
  EXPECT_EQ(ReadFile(*command.log_path), "before\nrunning\nend\n");
}

TEST_F(SystemRunnerTest, ProgramsThatCannotBeRun) {
  Command command;
  EXPECT_EQ(VerdictOfRunning(command), Verdict::kInvalid);
  command.argv = {"no-such-program"};
  EXPECT_EQ(VerdictOfRunning(command), Verdict::kInvalid);
  EXPECT_THAT(message, HasSubstr("no-such-program"));
  command.argv = {"disk-image-create"};
  command.environment = {{"PATH", folder}};
  EXPECT_EQ(VerdictOfRunning(command), Verdict::kInvalid);
  EXPECT_THAT(message, HasSubstr("; on Debian: apt install python3-diskimage-builder"));
  command.environment.clear();
  command.argv = {folder + "/none"};
  EXPECT_EQ(VerdictOfRunning(command), Verdict::kInvalid);
  EXPECT_THAT(message, HasSubstr("No such file"));
  command.argv = {folder};
  EXPECT_EQ(VerdictOfRunning(command), Verdict::kInvalid);
  command.argv = {"true"};
  command.log_path = folder + "/none/log";
  EXPECT_EQ(VerdictOfRunning(command), Verdict::kFail);
}

TEST_F(SystemRunnerTest, TheEnvironmentIsOnlyTheCommands) {
  Command command = Shell("env; cat");
  command.environment["A"] = "b c";
  std::filesystem::create_directory(folder + "/bin");
  std::filesystem::create_symlink("/bin/sh", folder + "/bin/shell");
  command.argv[0] = "shell";
  command.environment["PATH"] = folder + "/bin:/usr/bin:/bin";
  Exit exit = Run(command);
  EXPECT_THAT(exit.output, HasSubstr("A=b c\n"));
  EXPECT_THAT(exit.output, ::testing::Not(HasSubstr("HOME=")));
}

// Only the program gets the signal, so that it can end its children in order (builder.md 8.6).
TEST_F(SystemRunnerTest, AfterTheTimeOutTheProgramMayCleanUp) {
  Command command = Shell(
      "trap 'kill $child; wait $child; echo $? > $D/signalled; exit 3' TERM; sleep 1000 & child=$!; echo "
      "$child > "
      "$D/child; wait");
  command.timeout = std::chrono::milliseconds(200);
  command.grace = kLimit;
  Exit exit = Run(command);
  EXPECT_TRUE(exit.is_timed_out);
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(ReadFile(folder + "/signalled"), "143\n");
  EXPECT_FALSE(Exists(Pid("child")));
}

TEST_F(SystemRunnerTest, AProgramThatIgnoresTheSignalIsKilledWithAllThatItStarted) {
  Command command = Shell(
      "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > $D/session; while true; do sleep 1000; done' & "
      "sh -c 'echo $$ > $D/child; exec sleep 1000' & "
      "(setsid sh -c 'echo $$ > $D/orphan; exec sleep 1000' &) ; "
      "while true; do sleep 1000; done");
  command.timeout = std::chrono::milliseconds(300);
  Exit exit = Run(command);
  EXPECT_TRUE(exit.is_timed_out);
  EXPECT_EQ(exit.code, -SIGKILL);
  for (const char* name : {"session", "child", "orphan"}) EXPECT_FALSE(Exists(Pid(name))) << name;
}

TEST_F(SystemRunnerTest, ProcessesThatOutliveTheProgramAreEnded) {
  auto start = std::chrono::steady_clock::now();
  Exit exit = Run(Shell("setsid sh -c 'echo $$ > $D/left; sleep 1000' & while [ ! -s $D/left ]; do :; done"));
  EXPECT_EQ(exit.code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLimit);
  EXPECT_FALSE(Exists(Pid("left")));
}

TEST_F(SystemRunnerTest, CancellationEndsTheProgram) {
  TaskGroup tasks(loop, log::Logger("test"));
  std::thread watcher([&] {
    Pid("child");
    boost::asio::post(loop.context(), [&] { tasks.CancelAll(); });
  });
  Spawn(tasks, Shell("sh -c 'echo $$ > $D/child; exec sleep 1000'; true"));
  RunToEnd(loop, tasks.Join());
  watcher.join();
  EXPECT_FALSE(Exists(Pid("child")));
}

TEST_F(SystemRunnerTest, NothingSurvivesOurDeath) {
  pid_t other = ::fork();
  if (other == 0) {
    Loop own;
    SystemRunner its(own);
    RunToEnd(own, its.Run(Shell(
                      "(setsid sh -c 'trap \"\" TERM; echo $$ > $D/orphan; while true; do sleep 1000; "
                      "done' &); echo $$ > $D/program; trap 'touch $D/signalled; exit' TERM; while true; do "
                      "sleep 0.05; done")));
    ::_exit(0);
  }
  pid_t program = Pid("program");
  pid_t orphan = Pid("orphan");
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_TRUE(WaitFor([&] { return !Exists(program) && !Exists(orphan); }));
  EXPECT_TRUE(std::filesystem::exists(folder + "/signalled"));
}

TEST_F(SystemRunnerTest, KillingTheSupervisorKillsTheProgram) {
  std::thread watcher([&] {
    pid_t supervisor = Pid("parent");
    ::kill(supervisor, SIGKILL);
  });
  Exit exit = Run(Shell("echo $$ > $D/program; echo $PPID > $D/parent; exec sleep 1000"));
  watcher.join();
  EXPECT_EQ(exit.code, -SIGKILL);
  pid_t program = Pid("program");
  EXPECT_TRUE(WaitFor([&] { return !Exists(program); }));
}

TEST_F(SystemRunnerTest, ItsOwnMountsVanishWithIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs the right to mount";
  Command command = Shell("mount -t tmpfs none $D && touch $D/inside && grep -c $D /proc/self/mounts");
  command.has_own_mounts = true;
  Exit exit = Run(command);
  if (exit.code != 0) GTEST_SKIP() << "needs the right to mount: " << exit.output;
  EXPECT_EQ(exit.output, "1\n");
  EXPECT_FALSE(std::filesystem::exists(folder + "/inside"));
}

TEST_F(SystemRunnerTest, ManyAtATime) {
  TaskGroup tasks(loop, log::Logger("test"));
  for (int i = 0; i < 20; ++i) Spawn(tasks, Shell("echo x >> $D/all; sleep 0.05"));
  RunToEnd(loop, tasks.Join());
  EXPECT_EQ(ReadFile(folder + "/all").size(), 40u);
}

TEST(SplitWords, FollowsTheShell) {
  EXPECT_THAT(SplitWords("  sudo -E  disk-image-create "), ElementsAre("sudo", "-E", "disk-image-create"));
  EXPECT_THAT(SplitWords("a'b c'd \"e \\\" f\" g\\ h \"\\n\" ''"),
              ElementsAre("ab cd", "e \" f", "g h", "\\n", ""));
  EXPECT_THAT(SplitWords(""), ElementsAre());
  EXPECT_THROW(SplitWords("a 'b"), Error);
  EXPECT_THROW(SplitWords("a \\"), Error);
}

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
