#include "process/pid_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/testing/test_environment.h"

namespace nodepool::process {

namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(LockHolderTest, IsReadFromTheKernelsTable) {
  constexpr std::string_view kLocks =
      "1: POSIX  ADVISORY  WRITE 11 08:01:5678 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 12 08:02:5678 0 EOF\n"
      "3: FLOCK  ADVISORY  READ  13 fe:1a:5678 0 EOF\n"
      "3: -> FLOCK  ADVISORY  WRITE 14 fe:1b:5678 0 EOF\n"
      "4: FLOCK  ADVISORY  WRITE -1 08:03:5678 0 EOF\n"
      "nonsense\n";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 2), 5678), 12);
  EXPECT_EQ(LockHolderIn(kLocks, makedev(0xfe, 0x1a), 5678), 13);
  EXPECT_EQ(LockHolderIn(kLocks, makedev(0xfe, 0x1b), 5678), std::nullopt) << "it waits";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 1), 5678), std::nullopt) << "of another kind";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 3), 5678), std::nullopt) << "of another container";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 2), 567), std::nullopt);
}

class PidFileTest : public ::testing::Test {
 protected:
  std::string path() const { return (folder_ / "x.pid").string(); }
  void Write(const std::string& text) const { std::ofstream(path()) << text; }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path()).rdbuf();
    return text.str();
  }
  static pid_t DeadProcess() {
    pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    return child;
  }

  testing::TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
};

// operations.md 2.2
TEST_F(PidFileTest, ItHoldsTheNumberAndIsRemovedInTheEnd) {
  {
    PidFile file(path());
    file.Claim();
    EXPECT_EQ(Text(), std::to_string(::getpid()) + "\n");
    struct stat status {};
    ::stat(path().c_str(), &status);
    EXPECT_EQ(status.st_mode & 0133, 0U) << "no more than 0644";
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(PidFileTest, TheFileOfADeadProcessIsRemoved) {
  Write(std::to_string(DeadProcess()) + "\nmore\n");
  PidFile(path()).RemoveStale();
  EXPECT_FALSE(std::filesystem::exists(path()));
  Write("99999999999999999999\n");
  PidFile(path()).RemoveStale();
  EXPECT_FALSE(std::filesystem::exists(path())) << "no process has that number";
}

TEST_F(PidFileTest, AZombieIsDead) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  Write(std::to_string(child));
  PidFile(path()).RemoveStale();
  EXPECT_FALSE(std::filesystem::exists(path()));
  ::waitpid(child, nullptr, 0);
}

TEST_F(PidFileTest, WhatHoldsNoNumberIsReplacedAfterTheWait) {
  for (std::string text : {std::string(), std::string("not a number\n"), std::string("12x\n"),
                           std::string("-1\n"), std::string(4, '\0'), std::to_string(DeadProcess())}) {
    Write(text);
    PidFile file(path());
    file.Claim(seconds(0));
    EXPECT_EQ(Text(), std::to_string(::getpid()) + "\n") << text;
  }
}

TEST_F(PidFileTest, WhatIsWrittenMeanwhileIsNotReplaced) {
  Write("x");
  pid_t child = ::fork();
  while (child == 0) {
    Write("x");
    ::usleep(10'000);
  }
  PidFile file(path());
  try {
    file.Claim(seconds(1));
    ADD_FAILURE() << "replaced";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("x.pid names no process; remove it"));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(PidFileTest, AFileThatIsNoPidFileIsLeftAlone) {
  std::string config = "providers:\n" + std::string(100, '#') + "\n";
  Write(config);
  PidFile file(path());
  try {
    file.Claim(seconds(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kConflict);
    EXPECT_THAT(error.message(), HasSubstr("x.pid names no process; remove it"));
  }
  EXPECT_EQ(Text(), config);
}

TEST_F(PidFileTest, RubbishThatIsLockedIsNotReplaced) {
  Write("rubbish");
  int file = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_SH), 0);
  PidFile wanted(path());
  EXPECT_THROW(wanted.Claim(seconds(0)), Error);
  EXPECT_EQ(Text(), "rubbish");
  ::close(file);
}

TEST_F(PidFileTest, OtherFilesAreLeftAlone) {
  for (std::string text : {std::to_string(::getppid()), std::string("1\n"), std::string("not a number\n"),
                           std::string("12x\n"), std::string("-1\n"), std::string()}) {
    Write(text);
    PidFile(path()).RemoveStale();
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(PidFileTest, ALockOfAnotherProcessIsNotWaitedForForEver) {
  Write(std::to_string(DeadProcess()) + "\n");
  int file = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_SH), 0);
  try {
    PidFile(path()).RemoveStale(seconds(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kConflict);
    EXPECT_THAT(error.message(), HasSubstr("x.pid is locked by "));
    EXPECT_THAT(error.message(), HasSubstr("; end it or use -p FILE"));
  }
  ::close(file);
  PidFile(path()).RemoveStale(seconds(0));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(PidFileTest, TheErrorNamesTheRunningProcess) {
  Write(std::to_string(::getppid()) + "\n");
  PidFile file(path());
  try {
    file.Claim(seconds(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kConflict);
    EXPECT_THAT(error.message(), HasSubstr("process " + std::to_string(::getppid()) + " is running"));
  }
  file.Release();
  EXPECT_TRUE(std::filesystem::exists(path())) << "it is not ours";
}

TEST_F(PidFileTest, AFileThatIsRemovedMeanwhileIsClaimed) {
  Write("1\n");
  pid_t child = ::fork();
  if (child == 0) {
    ::unlink(path().c_str());
    ::_exit(0);
  }
  PidFile file(path());
  file.Claim();
  EXPECT_EQ(Text(), std::to_string(::getpid()) + "\n");
  ::waitpid(child, nullptr, 0);
}

TEST_F(PidFileTest, AFileThatCannotBeCreatedFailsAtOnce) {
  PidFile file((folder_ / "none/x.pid").string());
  try {
    file.Claim();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_THAT(error.message(), HasSubstr("none/x.pid: No such file"));
  }
}

TEST_F(PidFileTest, AChildDoesNotRemoveIt) {
  PidFile file(path());
  file.Claim();
  pid_t child = ::fork();
  if (child == 0) {
    file.Release();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

}  // namespace

}  // namespace nodepool::process
