#include "cli/remote/exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "async/event.h"
#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "cli/node_claim.h"
#include "cli/remote/remote_command.h"
#include "cli/tool.h"
#include "net/ssh/ssh_files.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::cli {

namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

Node UsableNode() {
  Node node;
  node.type = {LabelName("debian-12")};
  node.interface_ip = "203.0.113.7";
  node.connection_port = 2222;
  node.host_keys = {"ssh-ed25519 AAAAC3Nza+/=", "ecdsa-sha2-nistp256 BBBB"};
  return node;
}

std::string WhyNot(const Node& node) {
  Expected<net::SshNode> ssh = net::SshNodeOf(NodeId("0000000012"), node);
  return ssh ? "" : ssh.error().message();
}

TEST(SshNodeTest, AnOrdinaryNodeCanBeLoggedInTo) {
  Expected<net::SshNode> node = net::SshNodeOf(NodeId("0000000012"), UsableNode());
  ASSERT_TRUE(node);
  EXPECT_EQ(node->label, "debian-12");
  EXPECT_EQ(node->port, 2222);
  EXPECT_EQ(node->user, "zuul");
}

TEST(SshNodeTest, AnotherConnectionTypeIsRefusedByName) {
  Node node = UsableNode();
  node.connection_type = "winrm";
  EXPECT_EQ(
      WhyNot(node),
      "Node 0000000012 cannot be logged in to: its connection type is winrm, and only ssh is supported");
}

// A record must not be able to give ssh options or lines of configuration.
TEST(SshNodeTest, TextThatSshWouldObeyIsRefused) {
  for (const char* address : {"", "-oProxyCommand=x", "a b", "host\nProxyCommand x", "$(x)", "a;b"}) {
    Node node = UsableNode();
    node.interface_ip = address;
    EXPECT_THAT(WhyNot(node), HasSubstr("its address is")) << address;
  }
  for (const char* user : {"-l", "a b", "a\nProxyCommand x", "`x`"}) {
    Node node = UsableNode();
    node.username = user;
    EXPECT_THAT(WhyNot(node), HasSubstr("its user is")) << user;
  }
  for (const char* key :
       {"", "ssh-ed25519", "ssh-ed25519 AAAA\nother", "* ssh-ed25519 AAAA", "ssh-rsa A B"}) {
    Node node = UsableNode();
    node.host_keys = {key};
    EXPECT_THAT(WhyNot(node), HasSubstr("its host keys are not")) << key;
  }
  for (const char* port : {"0", "65536", "\"22\"", "{\"token\": \"x\"}", "null"}) {
    Node node = UsableNode();
    node.connection_port = boost::json::parse(port);
    EXPECT_THAT(WhyNot(node), HasSubstr("connection port")) << port;
    EXPECT_THAT(WhyNot(node), Not(HasSubstr("token")));
  }
}

std::vector<net::SshNode> TwoNodes() {
  return {{"0000000012", "debian-12", "203.0.113.7", 2222, "zuul", {"ssh-ed25519 AAAA"}},
          {"0000000013", "9-mac", "fe80::1%eth0", 22, "", {}}};
}

TEST(SshFilesTest, NodesAreKnownUnderTheirIds) {
  EXPECT_EQ(net::KnownHostsText(TwoNodes()), "0000000012 ssh-ed25519 AAAA\n");
  std::string config = net::SshConfigText(TwoNodes(), "/tmp/x", {});
  EXPECT_THAT(config, HasSubstr("Host 0000000012\n  HostName 203.0.113.7\n  Port 2222\n"));
  EXPECT_THAT(config, HasSubstr("  HostName fe80::1%%eth0\n"));
  EXPECT_THAT(config, HasSubstr("  BatchMode yes\n"));
  EXPECT_THAT(config, Not(HasSubstr("StrictHostKeyChecking accept-new")));
}

// The option is for nodes without keys; keys that are known are compared in any case.
TEST(SshFilesTest, AnyHostKeyIsAcceptedOnlyWhereNoneIsKnown) {
  std::string config = net::SshConfigText(TwoNodes(), "/tmp/x", {.accepts_any_key = true});
  EXPECT_THAT(config, HasSubstr("HostKeyAlias 0000000012\n  StrictHostKeyChecking yes\n"));
  EXPECT_THAT(config, HasSubstr("HostKeyAlias 0000000013\n  StrictHostKeyChecking accept-new\n"));
}

TEST(SshFilesTest, TheFolderIsPrivateAndVanishes) {
  std::string folder;
  {
    net::SshFiles files(TwoNodes(), {});
    folder = files.folder();
    auto permissions = std::filesystem::status(folder).permissions();
    EXPECT_EQ(permissions, std::filesystem::perms::owner_all);
    EXPECT_TRUE(std::filesystem::exists(files.config()));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(ShellWordsTest, OneWordIsALineForTheShell) {
  EXPECT_EQ(ShellLine({"make && make test"}), "\"${SHELL:-/bin/sh}\" -c 'make && make test'");
  EXPECT_EQ(ShellLine({"ls", "a b", "it's"}), "'ls' 'a b' 'it'\\''s'");
}

// EXEC-1
TEST(ShellWordsTest, TheCommandHasTheUmaskOfTheLogin) {
  std::string line = "umask 007; " + TrackedLine("umask", "", fmt::format("test-{}", ::getpid()));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> shell(::popen(line.c_str(), "r"), ::pclose);
  std::array<char, 16> said{};
  ASSERT_NE(std::fgets(said.data(), said.size(), shell.get()), nullptr);
  EXPECT_STREQ(said.data(), "0007\n");
}

TEST(InventoryTest, HostsAreInGroupsByLabel) {
  boost::json::value inventory = boost::json::parse(InventoryText(TwoNodes(), "/tmp/x/config"));
  const boost::json::object& all = inventory.at("all").as_object();
  EXPECT_EQ(all.at("hosts").at("0000000012").at("ansible_ssh_common_args").as_string(), "-F /tmp/x/config");
  EXPECT_TRUE(all.at("children").at("debian_12").at("hosts").as_object().contains("0000000012"));
  EXPECT_TRUE(all.at("children").at("_9_mac").at("hosts").as_object().contains("0000000013"));
}

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

// A claim that gets its nodes when the test says so.
class WaitingClaim : public NodeClaim {
 public:
  Task<> Obtain() override { return served.Wait(); }
  Task<> Keep(SteadyTime) override { co_return; }
  Task<> End() override { co_return; }
  std::vector<ClaimedNode> nodes() const override { return {}; }
  std::string Progress() const override { return "waiting; " + why; }
  std::string WhyWaiting() const override { return why; }
  Task<> AskForProgress() override {
    ++questions;
    co_return;
  }

  Event served{"nodes"};
  std::string why;
  int questions = 0;
};

class WaitLineTest : public ::testing::Test {
 protected:
  void TearDown() override {
    claim_.served.Set();
    time_.Run(tasks_.Join());
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  std::ostringstream out_;
  std::ostringstream terminal_;
  Console console_{time_.loop(), random_, out_};
  WaitingClaim claim_;
  log::Capture log_;
  TaskGroup tasks_{time_.loop(), log::Logger("test")};
};

// WHY-6
TEST_F(WaitLineTest, WithoutATerminalTheReasonIsLoggedWhenItChanges) {
  tasks_.Spawn("obtain", ObtainShowingWhy(console_, claim_));
  claim_.why = "cloud main uses 2 of 2 instances";
  time_.Advance(seconds(4));
  EXPECT_EQ(log_.records().size(), 0u) << "most requests are served before";
  time_.Advance(seconds(2));
  EXPECT_EQ(log_.Count("Waiting: cloud main uses 2 of 2 instances"), 1);
  claim_.why = "provider cloud cannot be used: it is away";
  time_.Advance(seconds(50));
  EXPECT_EQ(log_.records().size(), 1u) << "once a minute at most";
  time_.Advance(seconds(10));
  EXPECT_EQ(log_.Count("Waiting: provider cloud cannot be used: it is away"), 1);
  time_.Advance(std::chrono::hours(1));
  EXPECT_EQ(log_.records().size(), 2u) << "it has not changed";
}

TEST_F(WaitLineTest, ATerminalHasALineInstead) {
  console_.progress = &terminal_;
  tasks_.Spawn("obtain", ObtainShowingWhy(console_, claim_));
  claim_.why = "cloud main uses 2 of 2 instances";
  time_.Advance(seconds(10));
  EXPECT_NE(terminal_.str().find("waiting; cloud main uses 2 of 2 instances"), std::string::npos);
  EXPECT_EQ(log_.records().size(), 0u);
}

// A client that finds no server; `trouble` is the reason.
class AwaitServerTest : public ::testing::Test {
 protected:
  AwaitServerTest() { zk_.Disconnect(*client_); }
  ~AwaitServerTest() override { time_.Run(client_->Close()); }

  std::string Failure(ServerWait wait, const std::string& trouble) {
    wait.servers = "zk01:2181";
    zk::WireOptions options;
    ServerAwaiter awaiter(time_.loop(), wait, options);
    if (!trouble.empty()) options.on_trouble(trouble);
    begin_ = time_.clock().SteadyNow();
    try {
      time_.Run(awaiter.Await(*client_));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  Duration waited() { return time_.clock().SteadyNow() - begin_; }

  testing::VirtualTime time_;
  testing::MemoryZk zk_{time_.loop()};
  std::unique_ptr<zk::Client> client_ = zk_.Connect();
  SteadyTime begin_;
};

TEST_F(AwaitServerTest, AnEnsembleIsWaitedForTenSeconds) {
  EXPECT_EQ(Failure({}, "zk01:2181: Connection refused"),
            "no ZooKeeper server answered within 10 s (zk01:2181: Connection refused); check "
            "zookeeper-servers, or wait longer with --wait-for-server");
  EXPECT_EQ(waited(), std::chrono::seconds(10));
}

TEST_F(AwaitServerTest, TheEmbeddedServerThatRefusesDoesNotRun) {
  EXPECT_EQ(
      Failure({.asked = std::nullopt, .is_embedded = true}, "127.0.0.1:1: Connection refused"),
      "nodepool standalone does not run (127.0.0.1:1: Connection refused); start it, or wait for it with "
      "--wait-for-server");
  EXPECT_EQ(waited(), Duration::zero());
}

TEST_F(AwaitServerTest, ItIsWaitedAsLongAsAsked) {
  EXPECT_THAT(Failure({.asked = std::chrono::seconds(60)}, ""), HasSubstr("within 60 s (zk01:2181)"));
  EXPECT_EQ(waited(), std::chrono::seconds(60));
}

TEST_F(AwaitServerTest, AServerThatAnswersEndsTheWait) {
  zk_.Reconnect(*client_);
  EXPECT_EQ(Failure({}, ""), "");
}

}  // namespace

}  // namespace nodepool::cli
