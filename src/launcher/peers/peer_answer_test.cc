#include "launcher/peers/peer_answer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nodepool::launcher {
namespace {

TEST(PeerAnswerTest, ReasonsById) {
  auto answer = ReadPeerAnswer(
      R"({"reasons":[{"id":"200-0000000001","code":"capacity","provider":"ovh","pool":"main",)"
      R"("text":"ovh main uses 2 of 2 instances"},{"id":"200-0000000002","code":"tenant-limit",)"
      R"("provider":null,"pool":null,"text":"tenant t"}],"is_complete":true})",
      "np02");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->size(), 2u);
  EXPECT_EQ(
      answer->at(RequestId("200-0000000001")),
      (sched::RequestReason{
          "capacity", {ProviderName("ovh"), PoolName("main")}, "ovh main uses 2 of 2 instances", "np02"}));
  EXPECT_EQ(answer->at(RequestId("200-0000000002")).pool, PoolKey());
}

TEST(PeerAnswerTest, WhatIsNoAnswerIsRefused) {
  for (const char* text : {"", "{}", "[]", R"({"reasons":7})", R"({"reasons":[7]})"})
    EXPECT_FALSE(ReadPeerAnswer(text, "np02")) << text;
}

TEST(PeerAnswerTest, AHostileAnswerIsBounded) {
  std::string text = R"({"reasons":[)";
  for (int i = 0; i < 2'000; ++i) {
    text += fmt::format(R"({}{{"id":"200-{:010}","code":"capacity","text":"\u001b[2J{}"}})",
                        i == 0 ? "" : ",", i, std::string(i == 0 ? 100'000 : 10, 'x'));
  }
  auto answer = ReadPeerAnswer(text + "]}", "np02");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->size(), kMaxPeerReasons);
  const std::string& first = answer->begin()->second.text;
  EXPECT_LT(first.size(), 1'100u);
  EXPECT_EQ(first.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace nodepool::launcher
