#include "runners/node/runner_nodes.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/testing/test_environment.h"

namespace nodepool::runners {

// The script of a node, run by the shell of this computer.

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NodeScriptTest : public ::testing::Test {
 protected:
  NodeScriptTest() { std::filesystem::create_directory(home_ + "/actions-runner"); }

  void Install(const std::string& script) {
    std::string path = home_ + "/actions-runner/run.sh";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    ::chmod(path.c_str(), 0755);
  }
  RunnerOnNode Runner(bool may_be_root = true) const {
    return {RunId("0123abcd"), "actions-runner", may_be_root};
  }

  // All that the line prints with this text on its standard input.
  std::string Run(const std::string& line, const std::string& input) {
    std::string file = home_ + "/input";
    std::ofstream(file) << input;
    std::string command =
        "export HOME=" + home_ + "; ulimit -c 0; ( " + line + " ) <" + file + " 2>/dev/null";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string output;
    for (int c; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
    ::pclose(pipe);
    return output;
  }
  std::string Start(const std::string& input = "secret\n") { return Run(StartLine(Runner()), input); }
  std::string Text(const std::string& name) {
    std::ifstream file(home_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  nodepool::testing::TemporaryFolder temporary_;
  std::string home_ = temporary_.path();
};

constexpr const char* kQuickRunner =
    "echo \"Current runner version: '2.340.0'\"\necho 'Listening for Jobs'\necho 'Running job: x'\n"
    "echo \"$ACTIONS_RUNNER_INPUT_JITCONFIG $*\" >$HOME/given\nexit 3\n";

// RUN-40, RUN-50: the configuration is on no command line.
TEST_F(NodeScriptTest, FromTheStartToTheEnd) {
  Install(kQuickRunner);
  std::string output = Start();
  EXPECT_THAT(output, HasSubstr("nodepool-runner: ready\nnodepool-runner: started\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: online\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: job\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: ended 3\n"));
  EXPECT_THAT(output, Not(HasSubstr("secret")));
  EXPECT_EQ(Text("given"), "secret \n");
  struct stat folder {};
  ASSERT_EQ(::stat((home_ + "/.nodepool-runner/0123abcd").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700);
}

// RUN-1
TEST_F(NodeScriptTest, TheJobHasTheUmaskOfTheLogin) {
  Install("umask >$HOME/mask\n");
  Run("umask 007; " + StartLine(Runner()), "secret\n");
  EXPECT_EQ(Text("mask"), "0007\n");
}

// RUN-46
TEST_F(NodeScriptTest, ASecondStartOnlyWatches) {
  Install("echo x >>$HOME/starts\nexit 0\n");
  Start();
  std::string output = Start("other\n");
  EXPECT_THAT(output, Not(HasSubstr("ready")));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: started\nnodepool-runner: ended 0\n"));
  EXPECT_EQ(Text("starts"), "x\n");
}

// RUN-56: a daemon that dies before it has handed the configuration over leaves nothing.
TEST_F(NodeScriptTest, WithoutAConfigurationNothingStarts) {
  Install("echo x >>$HOME/starts\n");
  EXPECT_EQ(Start(""), "nodepool-runner: ready\n");
  EXPECT_EQ(Start("\n"), "nodepool-runner: ready\n");
  EXPECT_EQ(Text("starts"), "");
  Start();
  EXPECT_EQ(Text("starts"), "x\n");
}

// RUN-41
TEST_F(NodeScriptTest, WhatIsMissingIsSaid) {
  EXPECT_EQ(Start(), "nodepool-runner: refused actions-runner/run.sh is not there\n");
}

TEST_F(NodeScriptTest, RootMustBeWanted) {
  if (::geteuid() != 0) return;
  Install(kQuickRunner);
  EXPECT_THAT(Run(StartLine(Runner(false)), "x\n"), HasSubstr("refused the user is root"));
}

// RUN-44
TEST_F(NodeScriptTest, ADeprecatedVersionIsSaid) {
  Install("echo 'Runner version v2.300.0 is deprecated and cannot receive messages.'\nexit 7\n");
  EXPECT_THAT(Start(), HasSubstr("nodepool-runner: deprecated\nnodepool-runner: ended 7\n"));
}

// RUN-49: what starts it may go; a later session sees the runner, and its job by its process.
TEST_F(NodeScriptTest, TheRunnerOutlivesItsSession) {
  Install("echo 'Listening for Jobs'\n: Runner.Worker\nsh -c 'sleep 5; : Runner.Worker'\nexit 5\n");
  Run("timeout -s KILL 1 " + StartLine(Runner()).substr(std::string("exec ").size()), "secret\n");
  std::string output = Start("");
  EXPECT_THAT(output,
              HasSubstr("nodepool-runner: started\nnodepool-runner: version \nnodepool-runner: online\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: job\nnodepool-runner: ended 5\n"));
}

// RUN-43, RUN-54
TEST_F(NodeScriptTest, TheProcessesAreEnded) {
  Install("echo 'Listening for Jobs'\nsleep 1000\n");
  Run("timeout -s KILL 1 " + StartLine(Runner()).substr(std::string("exec ").size()), "secret\n");
  Run(EndLine(Runner()), "");
  EXPECT_THAT(Start(""), HasSubstr("nodepool-runner: ended -1\n"));
  EXPECT_EQ(Run(EndLine({RunId("00000000"), "actions-runner", true}), ""), "");
}

// The lines are one word of any login shell.
TEST_F(NodeScriptTest, TheLinesHaveNoControlCharactersButLineEnds) {
  for (const std::string& line : {StartLine(Runner()), EndLine(Runner())}) {
    EXPECT_TRUE(line.starts_with("exec /bin/sh -c '"));
    EXPECT_TRUE(line.ends_with("'"));
    for (char c : line) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
    EXPECT_LT(line.size(), 8000);
  }
}

// RUN-90: its token is in a file that goes with it.
TEST_F(NodeScriptTest, ForgejosRunner) {
  std::string path = home_ + "/actions-runner/forgejo-runner";
  std::ofstream(path) << "#!/bin/sh\nfor word; do case $word in file:*) cat \"${word#file:}\" >$HOME/token; "
                         "echo \"${word#file:}\" >$HOME/file;; "
                         "esac; done\necho \"$*\" >$HOME/given\n(sleep 3; :)\nexit 1\n";
  ::chmod(path.c_str(), 0755);
  RunnerOnNode runner = Runner();
  runner.program = RunnerProgram::kForgejo;
  std::string output = Run(StartLine(runner), "https://forge u-1 secret h-1 small,gpu\n");
  EXPECT_THAT(output, HasSubstr("nodepool-runner: ready\nnodepool-runner: started\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: online\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: job\n"));
  EXPECT_THAT(output, HasSubstr("nodepool-runner: ended 1\n"));
  EXPECT_EQ(Text("token"), "secret");
  EXPECT_THAT(Text("given"), HasSubstr("one-job --url https://forge --uuid u-1 --token-url file:/"));
  EXPECT_THAT(Text("given"), HasSubstr("--handle h-1 --wait --label small:host --label gpu:host"));
  EXPECT_THAT(Text("given"), Not(HasSubstr("secret")));
  std::string file = Text("file");
  file.pop_back();
  EXPECT_FALSE(std::filesystem::exists(file)) << file;
  EXPECT_THAT(Run(StartLine(runner), ""), HasSubstr("started"));
}

// RUN-40
TEST_F(NodeScriptTest, ForgejosRunnerIsNotThereOrGetsNonsense) {
  RunnerOnNode runner = Runner();
  runner.program = RunnerProgram::kForgejo;
  EXPECT_THAT(Run(StartLine(runner), "a b c d e\n"), HasSubstr("refused there is neither"));
  std::string path = home_ + "/actions-runner/forgejo-runner";
  std::ofstream(path) << "#!/bin/sh\n";
  ::chmod(path.c_str(), 0755);
  EXPECT_THAT(Run(StartLine(runner), "only three words\n"), HasSubstr("refused the configuration"));
}

using Kind = NodeReport::Kind;

TEST(NodeReportTest, Reports) {
  EXPECT_EQ(ReadReport("nodepool-runner: ready")->kind, Kind::kReady);
  EXPECT_EQ(ReadReport("nodepool-runner: online\r")->kind, Kind::kOnline);
  EXPECT_EQ(ReadReport("nodepool-runner: ended 7")->status, 7);
  EXPECT_EQ(ReadReport("nodepool-runner: version 2.340.0")->text, "2.340.0");
  EXPECT_EQ(ReadReport("nodepool-runner: refused no run.sh")->text, "no run.sh");
}

// What a job may write there.
TEST(NodeReportTest, OtherLinesAreNone) {
  for (const char* line : {"", "ready", "nodepool-runner:ready", "nodepool-runner: beat",
                           "nodepool-runner: ", "nodepool-runner: readyx", " nodepool-runner: ready"})
    EXPECT_FALSE(ReadReport(line)) << line;
}

TEST(NodeReportTest, OddStatusesAreUnknown) {
  for (const char* line :
       {"nodepool-runner: ended", "nodepool-runner: ended -1", "nodepool-runner: ended 256",
        "nodepool-runner: ended 1x", "nodepool-runner: ended 99999999999999999999"})
    EXPECT_EQ(ReadReport(line)->status, -1) << line;
}

TEST(NodeReportTest, TextsAreShortAndVisible) {
  auto report = ReadReport("nodepool-runner: refused \x1b[2J" + std::string(10'000, 'x'));
  ASSERT_TRUE(report);
  EXPECT_LT(report->text.size(), 300);
  EXPECT_EQ(report->text.find('\x1b'), std::string::npos);
}

}  // namespace

}  // namespace nodepool::runners
