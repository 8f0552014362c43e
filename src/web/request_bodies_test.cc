#include "web/request_bodies.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "async/testing/virtual_time.h"
#include "web/api/api_fields.h"
#include "web/lists/recent_answers.h"
#include "web/router.h"
#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

using launcher::ReasonOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class RouterTest : public ::testing::Test {
 protected:
  static Endpoint Says(std::string method, std::string path) {
    return {method, path, Pure([=](const Request& request) {
              Response response;
              response.body = method + path;
              std::string separator = " ";
              for (const auto& [name, value] : request.query)
                response.body += std::exchange(separator, "&") + name + "=" + value;
              return response;
            })};
  }
  Response Ask(std::string method, std::string path, std::string accept = "") {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    if (!accept.empty()) request.headers["accept"] = std::move(accept);
    return Ask(std::move(request));
  }
  Response Ask(Request request) { return time_.Run(router_.Answer(std::move(request))); }

  testing::VirtualTime time_;
  static Endpoint ForAnyMethod(Endpoint endpoint) {
    endpoint.takes_any_method = true;
    return endpoint;
  }

  Router router_{{Says("GET", "/a"), Says("POST", "/a"), Says("GET", "/b"), ForAnyMethod(Says("GET", "/c"))}};
};

TEST_F(RouterTest, MethodAndPathDecide) {
  EXPECT_EQ(Ask("GET", "/a").body, "GET/a");
  EXPECT_EQ(Ask("POST", "/a").body, "POST/a");
  EXPECT_EQ(Ask("HEAD", "/b").body, "GET/b") << "the server leaves the body out";
}

TEST_F(RouterTest, PathsAreExact) {  // operations.md 6
  for (const char* path : {"/", "/a/", "/A", "/b/c"}) EXPECT_EQ(Ask("GET", path).status, 404) << path;
}

// ACT-12
TEST_F(RouterTest, DotsAreNoNames) {
  EXPECT_THAT(ParametersIn("/images/debian.12/build", "/images/{image}/build"), ElementsAre("debian.12"));
  for (const char* name : {"", ".", ".."})
    EXPECT_TRUE(ParametersIn(std::string("/images/") + name + "/build", "/images/{image}/build").empty())
        << name;
}

TEST_F(RouterTest, AnotherMethodGetsTheListOfMethods) {
  Response response = Ask("DELETE", "/a");
  EXPECT_EQ(response.status, 405);
  EXPECT_THAT(response.headers, Contains(Pair("Allow", "GET, HEAD, POST")));
}

TEST_F(RouterTest, SomeAnswerAnyMethod) {  // operations.6.6
  for (const char* method : {"GET", "HEAD", "POST", "OPTIONS", "NONSENSE"})
    EXPECT_EQ(Ask(method, "/c").body, "GET/c") << method;
}

TEST_F(RouterTest, TheyReadForms) {  // operations.6.2
  Request request;
  request.method = "POST";
  request.path = "/c";
  request.query = {{"fields", "of+query"}};
  request.headers["content-type"] = "application/x-www-form-urlencoded; charset=UTF-8";
  request.body = "fields=of+form&node_id=%30";
  EXPECT_EQ(Ask(request).body, "GET/c fields=of form&node_id=0&fields=of+query");
  request.body = "node_id=%3";
  EXPECT_EQ(Ask(request).status, 400);
  request.headers["content-type"] = "text/plain";
  EXPECT_EQ(Ask(request).body, "GET/c fields=of+query");
}

TEST_F(RouterTest, ErrorsHaveTheAcceptedFormat) {  // operations.6.6
  EXPECT_EQ(Ask("GET", "/x").body, "404 Not Found\n\nThere is nothing at /x.\n");
  Response response = Ask("GET", "/x", "application/json");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body,
            R"({"message":"There is nothing at /x.","code":"404 Not Found","title":"Not Found"})");
  std::string browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
  response = Ask("GET", "/<b>&", browser);
  EXPECT_EQ(response.content_type, "text/html; charset=UTF-8");
  EXPECT_EQ(response.body,
            "<html>\n<head><title>404 Not Found</title></head>\n<body>\n<h1>404 Not Found</h1>\n"
            "<p>There is nothing at /&lt;b&gt;&amp;.</p>\n</body>\n</html>\n");
  for (const char* accept : {"*/*", "text/*", "text/plain, text/html", "image/png", "nonsense"})
    EXPECT_EQ(Ask("GET", "/x", accept).content_type, "text/plain; charset=UTF-8") << accept;
  for (const char* accept : {"application/*", "application/json;q=0.9, text/plain;q=0.5"})
    EXPECT_EQ(Ask("GET", "/x", accept).content_type, "application/json") << accept;
}

TEST(CachingTest, Headers) {  // operations.6.6
  Response response;
  AddCachingHeaders(response, FromSeconds(784111777.9));
  EXPECT_THAT(response.headers, ElementsAre(Pair("Access-Control-Allow-Origin", "*"),
                                            Pair("Cache-Control", "max-age=1, public"),
                                            Pair("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                                            Pair("Expires", "Sun, 06 Nov 1994 08:49:38 GMT")));
}

struct Part {
  std::optional<std::string> tenant;
};

struct Order {
  NodeId node;
  Part part;
  std::optional<int> seconds;
  bool is_drained = false;
};

const BodyTable<Order>& Keys() {
  using Table = BodyTable<Order>;
  static const Table table({
      Table::OfText("node", "which", &Order::node),
      Table::OfText(
          "tenant", "whose", [](Order& order) -> auto& { return order.part.tenant; }, 10)
          .Optional(),
      Table::OfWhole("seconds", 1, 60, "how long", &Order::seconds).Optional(),
      Table::OfFlag("drain", "with all", &Order::is_drained).Optional(),
  });
  return table;
}

Expected<Order> ReadOrder(const std::string& body) {
  Request request;
  request.headers["content-type"] = "application/json";
  request.body = body;
  return ReadBody<Order>([&](Order& order) { Keys().Take(request, order); });
}

TEST(BodyTableTest, PutsEachKeyWhereItBelongs) {
  Expected<Order> order = ReadOrder(R"({"node": "1", "tenant": "t", "seconds": 60, "drain": true})");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->node, NodeId("1"));
  EXPECT_EQ(order->part.tenant, "t");
  EXPECT_EQ(order->seconds, 60);
  EXPECT_TRUE(order->is_drained);
  EXPECT_EQ(ReadOrder(R"({"node": "1"})")->seconds, std::nullopt);
}

TEST(BodyTableTest, RefusesWhatTheTableDoesNotPermit) {
  EXPECT_EQ(ReadOrder("{}").error().message(), "node is required.");
  EXPECT_EQ(ReadOrder("").error().verdict(), Verdict::kInvalid);
  EXPECT_EQ(ReadOrder(R"({"node": "1", "seconds": 61})").error().message(),
            "seconds is a whole number from 1 to 60.");
  EXPECT_EQ(ReadOrder(R"({"node": "1", "tenant": "12345678901"})").error().message(),
            "tenant is a text of 1 to 10 bytes.");
  EXPECT_EQ(ReadOrder(R"({"node": "1", "hours": 1})").error().message(), "There is no key \"hours\" here.");
}

TEST(BodyTableTest, DocumentsStateTheBounds) {
  boost::json::object schema = SchemaOf(Keys().type());
  EXPECT_EQ(boost::json::serialize(schema["required"]), R"(["node"])");
  EXPECT_EQ(boost::json::serialize(schema["properties"].at("seconds")),
            R"({"type":"integer","minimum":1,"maximum":60,"description":"how long"})");
  EXPECT_EQ(DescriptionOf(Keys().type().fields[2].type), "whole number from 1 to 60");
  EXPECT_EQ(DescriptionOf(Keys().type().fields[1].type), "text of at most 10 bytes");
}

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

std::string TextOf(const launcher::RequestStatus& status, WallTime now) {
  listing::AgedText text;
  RequestFields().Append(text, status);
  std::string shown;
  text.AppendTo(shown, now);
  return shown;
}

// A contract with programs: keys, their order and values must not change by accident.
TEST(RequestFieldsTest, AWaitingRequest) {
  NodeRequest record;
  record.SetState(RequestState::kRequested, FromSeconds(1'000'000'050));
  record.created_time = FromSeconds(1'000'000'000);
  record.node_types = {LabelName("small"), LabelName("large")};
  record.requestor = "zuul";
  record.event_id = "e1";
  record.declined_by = {LauncherId("l1")};
  PoolKey pool{ProviderName("cloud"), PoolName("main")};
  launcher::RequestStatus status{RequestId("200-0000000012"), &record, std::nullopt, {}};
  status.reason = sched::RequestReason{"tenant-limit", {}, "tenant t has 8 of max-servers 8", "np02"};
  status.waits.push_back(
      ReasonOf(pool, {sched::Decision::Kind::kDefer, sched::Reason::kCapacityReserved, "instances"}));
  EXPECT_EQ(
      TextOf(status, FromSeconds(1'000'000'061.5)),
      R"({"id":"200-0000000012","state":"requested","age":61,"labels":["small","large"],"requestor":"zuul",)"
      R"("tenant":null,"provider":null,"priority":0,"event_id":"e1","nodes":[],"declined_by":["l1"],)"
      R"("accepted_by":null,"waits":[{"provider":"cloud","pool":"main","reason":"capacity-reserved",)"
      R"("text":"keeps its capacity for an earlier request, which waits for instances"}],)"
      R"("reason":{"code":"tenant-limit","provider":null,"pool":null,)"
      R"("text":"tenant t has 8 of max-servers 8","launcher":"np02"},)"
      R"("decline_reasons":[],"is_deleted":false})");
}

TEST(RequestFieldsTest, AnAcceptedRequestThatMissesCapacity) {
  NodeRequest record;
  record.SetState(RequestState::kPending, FromSeconds(1'000'000'000));
  record.node_types = {LabelName("small")};
  record.provider = ProviderName("cloud");
  record.tenant_name = "t1";
  PoolKey pool{ProviderName("cloud"), PoolName("main")};
  sched::PoolView view;
  view.key = pool;
  view.pool = {{{"instances", 2}}, {}, {{"instances", 2}}, {}};
  sched::FillPlan plan;
  plan.wait = record.node_types;
  plan.pool_shortage = {{"instances", 1}};
  launcher::RequestStatus status{RequestId("200-0000000012"), &record, pool, {ReasonOf(view, plan)}};
  EXPECT_EQ(TextOf(status, FromSeconds(1'000'000'000)),
            R"({"id":"200-0000000012","state":"pending","age":0,"labels":["small"],"requestor":null,)"
            R"("tenant":"t1","provider":"cloud","priority":0,"event_id":null,"nodes":[],"declined_by":[],)"
            R"("accepted_by":{"provider":"cloud","pool":"main"},"waits":[{"provider":"cloud","pool":"main",)"
            R"("reason":"capacity","text":"uses 2 of 2 instances; raise its max-servers, or wait for nodes",)"
            R"("labels":["small"],"missing":{"pool":{"instances":1},"provider":{}}}],"reason":null,)"
            R"("decline_reasons":[],"is_deleted":false})");
}

}  // namespace

}  // namespace nodepool::web
