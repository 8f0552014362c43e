#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <semaphore>
#include <sstream>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "debug/stack_dump.h"
#include "debug/watchdog.h"

namespace nodepool::debug {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(NativeStacksTest, ShowsTheStackOfEveryThread) {  // operations.2.4
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  pthread_setname_np(other.native_handle(), "other");
  std::vector<ThreadStack> stacks = NativeStacks();
  is_over = true;
  other.join();
  ASSERT_GE(stacks.size(), 2u);
  EXPECT_EQ(stacks[0].id, getpid());
  EXPECT_FALSE(stacks[0].is_background);
  for (const ThreadStack& stack : stacks) EXPECT_THAT(stack.frames, Not(IsEmpty())) << stack.name;
  EXPECT_THAT(ToText(stacks), AllOf(HasSubstr(fmt::format("Thread: {} ", getpid())), HasSubstr(" d: False\n"),
                                    HasSubstr(" other d: True\n"), Not(::testing::EndsWith("\n"))));
}

TEST(WatchdogTest, ReportsABlockedLoopAndItsEnd) {
  std::string log =
      (std::filesystem::temp_directory_path() / fmt::format("nodepool-watchdog-{}.log", getpid())).string();
  log::ToFile(log);
  auto logged = [&] {
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    return text.str();
  };
  Loop loop;
  Watchdog watchdog({loop, "The loop", "everything"}, {},
                    {std::chrono::milliseconds(200), std::chrono::seconds(30)});
  auto has_logged = [&](const char* text) { return logged().find(text) != std::string::npos; };
  SteadyTime deadline = loop.SteadyNow() + std::chrono::minutes(2);
  // Blocks like a driver's function that does not return, until the watchdog has noticed.
  boost::asio::post(loop.context(), [&] {
    while (!has_logged("blocked for") && loop.SteadyNow() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
  auto wait = [](Loop& waiting, SteadyTime until, auto is_over) -> Task<> {
    while (!is_over() && waiting.SteadyNow() < until)
      co_await waiting.SleepFor(std::chrono::milliseconds(20));
  };
  std::function<bool()> is_over = [&] { return has_logged("turns again"); };
  RunToEnd(loop, wait(loop, deadline, is_over));
  EXPECT_THAT(logged(), HasSubstr("The loop has been blocked for"));
  EXPECT_THAT(logged(), HasSubstr("turns again"));
  log::ToStderr();
  std::filesystem::remove(log);
}

TEST(WatchdogTest, NamesTheDriverWhoseCodeRuns) {
  ThreadStack stack;
  stack.frames = {"main", "my_cloud::Adapter::Create()", "nanosleep"};
  stack.modules = {"nodepool-launcher", "/drivers/mine.so", "libc.so.6"};
  EXPECT_EQ(SuspectIn(stack, {{"/drivers/mine.so", "mine"}}), "driver mine (/drivers/mine.so)");
  EXPECT_EQ(SuspectIn(stack, {}), "");
  stack.frames[1] = "nodepool::drivers::FakeAdapter::Create()";
  EXPECT_EQ(SuspectIn(stack, {}), "nodepool::drivers::FakeAdapter::Create()");
}

TEST(StackDumpTest, ABlockedLoopIsReported) {
  StackDump::BlockSignal();
  std::string log =
      (std::filesystem::temp_directory_path() / fmt::format("nodepool-test-{}.log", getpid())).string();
  log::ToFile(log);
  log::SetLevel("nodepool.stack_dump", log::Level::kDebug);
  auto logged = [&] {
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    return text.str();
  };
  Loop loop;  // never run
  {
    StackDump stack_dump({{loop, "The loop"}}, std::nullopt);
    kill(getpid(), SIGUSR2);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (logged().find("End debug handler") == std::string::npos &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::string text = logged();
  log::ToStderr();
  log::SetLevel("nodepool.stack_dump", log::Level::kInfo);
  std::filesystem::remove(log);
  EXPECT_THAT(text, AllOf(HasSubstr("Beginning debug handler"), HasSubstr("Thread: "),
                          HasSubstr("stack dump d: True"), HasSubstr("The loop does not turn"),
                          HasSubstr("End debug handler")));
}

TEST(TaskDumpTest, NameSubjectAndAge) {
  testing::VirtualTime time;
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("handle request", {"e1", "200-0000000012", ""}, time.loop().SleepFor(std::chrono::hours(1)));
  time.Advance(std::chrono::milliseconds(12'500));
  EXPECT_EQ(DescribeTasks(time.loop().tasks(), time.loop().SteadyNow()),
            "1 tasks, oldest first\n"
            "Task: [e: e1] [node_request: 200-0000000012] handle request age: 12.5 s, awaits a timer (at "
            "most 3587.5 s)");
  time.Run(tasks.Stop());
}

TEST(TaskDumpTest, ShowsWhatATaskAwaitsTheOuterBeforeTheInner) {
  testing::VirtualTime time;
  TaskGroup tasks(time.loop(), log::Logger("test"));
  Event answer("the cloud's answer");
  tasks.Spawn("delete", WithDeadline(time.loop(), time.loop().SteadyNow() + std::chrono::seconds(600),
                                     "deletion", answer.Wait()));
  time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(DescribeTasks(time.loop().tasks(), time.loop().SteadyNow()),
            "1 tasks, oldest first\n"
            "Task: delete age: 1.0 s, awaits deletion (at most 599.0 s); the cloud's answer");
  answer.Set();
  time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(tasks.size(), 0u);
}

// Spends processor time, of which samples are taken.
void Work() {
  volatile double value = 1;
  clock_t end = clock() + CLOCKS_PER_SEC / 10;
  while (clock() < end) value = value * 1.0000001;
}

TEST(CpuProfileTest, ShowsWhereTimeWasSpentAndByWhichThread) {  // operations.2.4
  std::binary_semaphore is_over{0};
  std::thread idle([&] { is_over.acquire(); });
  CpuProfile profile(std::nullopt);
  ASSERT_TRUE(profile.Start());
  Work();
  ProfileReport report = profile.Stop();
  is_over.release();
  idle.join();
  EXPECT_THAT(report.functions, Not(IsEmpty()));
  ASSERT_EQ(report.threads.size(), 2u);
  EXPECT_EQ(report.threads[0].id, getpid()) << "the busiest comes first";
  EXPECT_GE(report.threads[0].time, std::chrono::milliseconds(90));
  EXPECT_LT(report.threads[1].time, report.threads[0].time);
  EXPECT_THAT(ToText(report), HasSubstr(fmt::format(" s thread {} debug_test", getpid())));
}

TEST(CpuProfileTest, TheFileRemainsOnlyInAConfiguredFolder) {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("nodepool-test-{}", getpid());
  std::filesystem::create_directories(folder);
  CpuProfile kept(folder);
  ASSERT_TRUE(kept.Start());
  Work();
  ProfileReport report = kept.Stop();
  EXPECT_EQ(std::filesystem::path(report.path).parent_path(), folder);
  EXPECT_THAT(ToText(report), HasSubstr(report.path));
  EXPECT_EQ(TopFunctions(report.path, 3).size(), std::min<std::size_t>(report.functions.size(), 3));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(TopFunctions(report.path, 3), IsEmpty());
  CpuProfile removed(std::nullopt);
  ASSERT_TRUE(removed.Start());
  EXPECT_EQ(removed.Stop().path, "");
  std::string ours = fmt::format("nodepool-{}-", getpid());
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(ours)) << entry.path();
  }
}

}  // namespace
}  // namespace nodepool::debug
