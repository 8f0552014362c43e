#include "web/requests/request_body.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "web/access/tokens_for_test.h"

namespace nodepool::web {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Request With(std::string body) {
  Request request;
  request.headers["content-type"] = "application/json; charset=utf-8";
  request.body = std::move(body);
  return request;
}

std::string FaultOf(const std::string& body) {
  Expected<OrderBody> read = ReadOrderBody(With(body));
  return read ? "" : read.error().message();
}

TEST(RequestBodyTest, LabelsAreAListOrCounts) {
  EXPECT_THAT(ReadOrderBody(With(R"({"labels": ["b", "a", "b"]})"))->order.labels,
              ElementsAre(LabelName("b"), LabelName("a"), LabelName("b")));
  EXPECT_THAT(ReadOrderBody(With(R"({"labels": {"b": 2, "a": 1}})"))->order.labels,
              ElementsAre(LabelName("b"), LabelName("b"), LabelName("a")));
}

TEST(RequestBodyTest, EveryKey) {
  Expected<OrderBody> body = ReadOrderBody(With(
      R"({"labels": ["a"], "priority": 100, "relative_priority": 1.5, "requestor": "job 7", "tenant": "t",)"
      R"( "provider": "cloud", "lease": 60})"));
  ASSERT_TRUE(body) << body.error().message();
  EXPECT_EQ(body->priority, 100);
  EXPECT_EQ(body->order.relative_priority, 1.5);
  EXPECT_EQ(body->order.requestor, "job 7");
  EXPECT_EQ(body->order.tenant, "t");
  EXPECT_EQ(body->order.provider, ProviderName("cloud"));
  EXPECT_EQ(body->order.lease_seconds, 60);
}

// REQ-15
TEST(RequestBodyTest, AnythingElseIsRefusedByName) {
  EXPECT_THAT(FaultOf(R"({"labels": ["a"], "colour": 1})"), HasSubstr("colour"));
  EXPECT_THAT(FaultOf(R"({"labels": ["a"], "labels": ["b"]})"), HasSubstr("labels is there twice"));
  for (std::string labels : {"[]", "{}", "7", "null", R"("a")", R"([7])", R"([""])", R"({"a": 0})",
                             R"({"a": -1})", R"({"a": 1.5})", R"({"a": 101})", R"({"a": 60, "b": 60})"})
    EXPECT_THAT(FaultOf(R"({"labels": )" + labels + "}"), HasSubstr("labels")) << labels;
  for (std::string member : {R"("priority": 1000)", R"("priority": -1)", R"("priority": "1")",
                             R"("lease": 29)", R"("lease": 86401)", R"("lease": 1e300)", R"("requestor": "")",
                             R"("requestor": "NodePool:min-ready")", R"("tenant": 7)",
                             R"("relative_priority": "x")", R"("relative_priority": NaN)"})
    EXPECT_THAT(FaultOf(R"({"labels": ["a"], )" + member + "}"), HasSubstr(member.substr(1, 5))) << member;
  for (const char* body : {"", "{", "[]", "7", R"({"labels": ["a"]} x)", "{\"labels\": [\"\xff\"]}"})
    EXPECT_NE(FaultOf(body), "") << body;
  EXPECT_NE(FaultOf(R"({"labels": )" + std::string(50'000, '[') + "}"), "");
  EXPECT_EQ(FaultOf("{}"), "labels is required.");
  Request request = With(R"({"labels": ["a"]})");
  request.headers["content-type"] = "text/plain";
  EXPECT_EQ(ReadOrderBody(request).error().verdict(), Verdict::kConflict);
}

// REQ-30
TEST(RequestBodyTest, LabelsAreOnlySoLong) {
  auto fault = [](std::size_t length, int count) {
    return FaultOf(fmt::format(R"({{"labels": {{"{}": {}}}}})", std::string(length, 'a'), count));
  };
  EXPECT_EQ(fault(128, 1), "");
  EXPECT_EQ(fault(129, 1), "labels is a text of 1 to 128 bytes.");
  EXPECT_EQ(FaultOf(R"({"labels": [")" + std::string(129, 'a') + R"("]})"),
            "labels is a text of 1 to 128 bytes.");
  EXPECT_EQ(fault(81, 100), "");
  EXPECT_EQ(fault(82, 100), "labels is a list of names of at most 8192 bytes in total.");
}

TEST(RequestBodyTest, WhatWasAskedHasADigest) {
  auto asked = [](const std::string& body) { return ReadOrderBody(With(body))->order.asked; };
  EXPECT_EQ(asked(R"({"labels": ["a", "a"]})"), asked(R"({"lease": 300, "labels": {"a": 2}})"));
  EXPECT_NE(asked(R"({"labels": ["a"]})"), asked(R"({"labels": ["a"], "lease": 60})"));
  EXPECT_NE(asked(R"({"labels": ["a"]})"), asked(R"({"labels": ["a"], "priority": 200})"));
}

TEST(RequestBodyTest, Holds) {
  Expected<HoldBody> body = ReadHoldBody(With(R"({"node": "0000000001", "reason": "bug 7", "seconds": 60})"));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->node, NodeId("0000000001"));
  EXPECT_EQ(body->reason, "bug 7");
  EXPECT_EQ(body->seconds, 60);
  EXPECT_FALSE(ReadHoldBody(With("{}")));
  EXPECT_FALSE(ReadHoldBody(With(R"({"node": "1", "seconds": 0})")));
}

TEST(RequestBodyTest, KeysAndWaits) {
  Request request = With("");
  EXPECT_EQ(*ReadIdempotencyKey(request), "");
  request.headers["idempotency-key"] = "build-7/a";
  EXPECT_EQ(*ReadIdempotencyKey(request), "build-7/a");
  for (std::string bad :
       {std::string(), std::string("a b"), std::string(256, 'a'), std::string("\xc3\xa4")}) {
    request.headers["idempotency-key"] = bad;
    EXPECT_FALSE(ReadIdempotencyKey(request)) << bad;
  }
  auto wait = [](std::string value) {
    Request asking;
    asking.query = {{"wait", std::move(value)}};
    return ReadWait(asking);
  };
  EXPECT_EQ(*wait("60"), std::chrono::seconds(60));
  EXPECT_EQ(*ReadWait(Request()), Duration::zero());
  for (const char* bad : {"61", "-1", "1.5", "x", "1x"}) EXPECT_FALSE(wait(bad)) << bad;
}

// REQ-19
TEST(TokenLimitsTest, TheTokenDecides) {
  auto apply = [](const config::WebToken& token, const std::string& json, OrderBody& body) {
    body = *ReadOrderBody(With(json));
    return ApplyToken(token, body);
  };
  OrderBody body;
  config::WebToken free = Token("ci");
  EXPECT_EQ(apply(free, R"({"labels": ["a"]})", body), "");
  EXPECT_EQ(body.order.client, "ci");
  EXPECT_EQ(body.order.requestor, "ci");
  EXPECT_EQ(body.order.priority, 200);
  EXPECT_EQ(apply(free, R"({"labels": ["a"], "priority": 0, "tenant": "any"})", body), "");
  config::WebToken bound = Token("ci");
  bound.labels = {"debian-*", "small"};
  bound.priority = 300;
  bound.tenant = "team-a";
  bound.max_nodes = 2;
  EXPECT_EQ(apply(bound, R"({"labels": ["small", "debian-12"], "requestor": "me"})", body), "");
  EXPECT_EQ(body.order.priority, 300);
  EXPECT_EQ(body.order.tenant, "team-a");
  EXPECT_EQ(body.order.requestor, "me");
  EXPECT_EQ(body.order.max_nodes, 2u);
  EXPECT_THAT(apply(bound, R"({"labels": ["large"]})", body), HasSubstr("debian-*, small, not large"));
  EXPECT_THAT(apply(bound, R"({"labels": ["small"], "priority": 299})", body),
              HasSubstr("from 300 on, not 299"));
  EXPECT_THAT(apply(bound, R"({"labels": ["small"], "tenant": "b"})", body), HasSubstr("team-a, not b"));
  EXPECT_THAT(apply(bound, R"({"labels": {"small": 3}})", body), HasSubstr("2 nodes at a time, not 3"));
}

}  // namespace
}  // namespace nodepool::web
