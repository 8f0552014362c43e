#include "cli/server/lease_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>

#include "cli/server/exec_by_server.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

json::object Answer() {
  return json::parse(R"({"id": "0123456789abcdef0123456789abcdef", "state": "held", "lease": 60, "waits": [],
    "failure": null, "ready": null, "nodes": [{"id": "0000000007", "labels": ["small"], "interface_ip": "::1",
    "connection_type": "ssh", "connection_port": 22, "host_keys": ["ssh-rsa AAAA"], "username": null}]})")
      .as_object();
}

std::string FaultOf(const json::value& answer) {
  Expected<LeaseView> view = ReadLeaseView(json::serialize(answer));
  return view ? "" : view.error().message();
}

TEST(LeaseViewTest, HasWhatALoginNeeds) {
  Expected<LeaseView> view = ReadLeaseView(json::serialize(Answer()));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->state, LeaseState::kHeld);
  EXPECT_EQ(view->lasts, std::chrono::seconds(60));
  EXPECT_EQ(view->ready, std::nullopt);
  ASSERT_EQ(view->nodes.size(), 1u);
  EXPECT_EQ(view->nodes[0].record.interface_ip, "::1");
  EXPECT_EQ(view->nodes[0].record.username, std::nullopt);
}

TEST(LeaseViewTest, AnyOtherAnswerIsRefused) {
  EXPECT_THAT(FaultOf("text"), HasSubstr("no JSON object"));
  EXPECT_FALSE(ReadLeaseView("<html>"));
  EXPECT_FALSE(ReadLeaseView(std::string(100'000, '[')));
  for (const auto& [key, values] : std::vector<std::pair<std::string, json::array>>{
           {"id", {nullptr, 7, "../../nodes", std::string(31, 'a')}},
           {"state", {nullptr, "gone", 1}},
           {"lease", {nullptr, 0, -5, 1e300, "60"}},
           {"nodes",
            {nullptr, json::object(), json::array{7}, json::array{json::object()},
             json::array{json::object{{"id", "-oProxyCommand=x"}}}, json::array{json::object{{"id", "7"}}},
             json::array(101)}}}) {
    for (const json::value& value : values) {
      json::object answer = Answer();
      answer[key] = value;
      EXPECT_NE(FaultOf(answer), "") << key << " " << json::serialize(value);
    }
  }
}

TEST(LeaseViewTest, WhatIsOnlyForPeopleMayBeAnything) {
  json::object answer = Answer();
  answer["waits"] = json::array{7, json::object{{"text", 5}}};
  answer["ready"] = "many";
  answer["failure"] = json::array();
  EXPECT_EQ(FaultOf(answer), "");
  answer["failure"] = "a\x1b[2Jb";
  EXPECT_THAT(ReadLeaseView(json::serialize(answer))->failure, Not(HasSubstr("\x1b")));
}

TEST(ServerOptionsTest, TheAddressIsThatOfAServer) {
  for (const char* good : {"https://nodepool.example", "http://127.0.0.1:8005/", "https://h/below/nodepool"})
    EXPECT_EQ(FaultOfServer(good), "") << good;
  for (const char* bad :
       {"", "nodepool.example:8005", "ftp://h/", "https://u:p@h/", "https://h/?a=b", "https://h/#x"})
    EXPECT_NE(FaultOfServer(bad), "") << bad;
}

// EXEC-17
TEST(ServerOptionsTest, TheTokenIsInAFileOrInTheEnvironment) {
  std::string path = ::testing::TempDir() + "token-" + std::to_string(::getpid());
  auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  ServerOptions options{.url = "https://h//", .token_file = path};
  auto token = [&] {
    Expected<ServerAccess> access = AccessOf(options);
    return access ? access->token : access.error().message();
  };
  write("ci.0123\n");
  EXPECT_EQ(token(), "ci.0123");
  EXPECT_EQ(AccessOf(options)->url, "https://h");
  for (const std::string& bad :
       {std::string("ci.01\r\nX-Evil: 1"), std::string("secret without"), "ci." + std::string(2'000, 'x')}) {
    write(bad);
    EXPECT_THAT(token(), HasSubstr("is no token"));
    EXPECT_THAT(token(), Not(HasSubstr(bad.substr(0, 5))));
  }
  std::filesystem::remove(path);
  EXPECT_THAT(token(), HasSubstr("cannot be read"));
  options.token_file.reset();
  ::unsetenv(kTokenVariable);
  EXPECT_THAT(token(), HasSubstr("NODEPOOL_TOKEN has no token"));
  ::setenv(kTokenVariable, "env.4567", 1);
  EXPECT_EQ(token(), "env.4567");
  ::unsetenv(kTokenVariable);
}

}  // namespace

}  // namespace nodepool::cli
