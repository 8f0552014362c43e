#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <filesystem>

#include "cli/remote/inventory.h"
#include "cli/remote/remote_command.h"
#include "net/ssh/ssh_files.h"

namespace nodepool::cli {
namespace {

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

TEST(InventoryTest, HostsAreInGroupsByLabel) {
  boost::json::value inventory = boost::json::parse(InventoryText(TwoNodes(), "/tmp/x/config"));
  const boost::json::object& all = inventory.at("all").as_object();
  EXPECT_EQ(all.at("hosts").at("0000000012").at("ansible_ssh_common_args").as_string(), "-F /tmp/x/config");
  EXPECT_TRUE(all.at("children").at("debian_12").at("hosts").as_object().contains("0000000012"));
  EXPECT_TRUE(all.at("children").at("_9_mac").at("hosts").as_object().contains("0000000013"));
}

}  // namespace
}  // namespace nodepool::cli
