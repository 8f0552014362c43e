#include "cli/remote/local_programs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace nodepool::cli {
namespace {

// PATH is a folder of its own.
class LocalProgramsTest : public ::testing::Test {
 protected:
  LocalProgramsTest() {
    ::mkdtemp(folder_.data());
    ::setenv("PATH", folder_.c_str(), 1);
  }
  ~LocalProgramsTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  void Install(const std::string& program, mode_t mode = 0755) {
    std::string file = folder_ + "/" + program;
    std::ofstream(file) << "#!/bin/sh\n";
    ::chmod(file.c_str(), mode);
  }

  const std::string path_ = std::getenv("PATH");
  std::string folder_ = ::testing::TempDir() + "local-programs-XXXXXX";
};

TEST_F(LocalProgramsTest, WhatIsMissingIsNamedWithTheOptionThatNeedsIt) {
  ExecOptions options{.command = {"make", "check"}, .sync = ".", .fetch = {"report"}};
  EXPECT_EQ(FaultOfThisComputer(options), "rsync is not installed here; --sync needs it");
  Install("rsync", 0644);
  EXPECT_EQ(FaultOfThisComputer(options), "rsync is not installed here; --sync needs it")
      << "it cannot be run";
  Install("rsync");
  EXPECT_EQ(FaultOfThisComputer(options), "ssh is not installed here; it is needed to log in");
  Install("ssh");
  EXPECT_EQ(FaultOfThisComputer(options), "scp is not installed here; --fetch needs it");
  Install("scp");
  EXPECT_EQ(FaultOfThisComputer(options), "");
}

TEST_F(LocalProgramsTest, ALocalCommandNeedsItsProgramOnly) {
  ExecOptions options{.command = {"ansible-playbook", "site.yaml"}, .runs_here = true};
  EXPECT_EQ(FaultOfThisComputer(options), "ansible-playbook is not installed here; it is the command");
  Install("ansible-playbook");
  EXPECT_EQ(FaultOfThisComputer(options), "");
  options.command = {folder_ + "/ansible-playbook", "site.yaml"};
  EXPECT_EQ(FaultOfThisComputer(options), "");
  options.command = {"a line && for the shell"};
  EXPECT_EQ(FaultOfThisComputer(options), "");
}

TEST_F(LocalProgramsTest, AnInventoryNeedsItsFolder) {
  ExecOptions options{.command = {"true"}, .runs_here = true};
  options.inventory = folder_ + "/hosts.yaml";
  EXPECT_EQ(FaultOfThisComputer(options), "");
  options.inventory = folder_ + "/none/hosts.yaml";
  EXPECT_EQ(FaultOfThisComputer(options), folder_ + "/none cannot be written; --inventory needs it");
}

}  // namespace
}  // namespace nodepool::cli
