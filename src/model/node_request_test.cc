#include "model/node_request.h"

#include <gtest/gtest.h>

#include "model/json.h"

namespace nodepool {
namespace {

namespace json = boost::json;

const WallTime kRequestNow = FromSeconds(1'800'000'000.25);

// As a launcher leaves it (coordination.md 4.3).
constexpr std::string_view kFulfilledRequest =
    R"({"state": "fulfilled", "state_time": 1726605931.1201, "declined_by": [], )"
    R"("node_types": ["small", "large", "small"], "nodes": ["0000000107", "0000000108", "0000000109"], )"
    R"("reuse": true, "requestor": "0f6c1c", "requestor_data": {"any": "thing", "n": [1, 2.5]}, )"
    R"("provider": null, "relative_priority": 0, "event_id": "5b2e", )"
    R"("created_time": 1726605880.5, "tenant_name": "demo"})";

NodeRequest ParsedRequest(std::string_view text) {
  Expected<NodeRequest> request = ParseNodeRequest(text, kRequestNow);
  EXPECT_TRUE(request.has_value()) << text << ": " << (request ? "" : request.error().message());
  return request.value_or(NodeRequest());
}

std::string RequestFault(std::string_view text) {
  Expected<NodeRequest> request = ParseNodeRequest(text, kRequestNow);
  EXPECT_FALSE(request.has_value()) << text;
  return request ? "" : request.error().message();
}

TEST(NodeRequest, WritesByteForByteWhatPythonWrites) {
  EXPECT_EQ(ToJson(ParsedRequest(kFulfilledRequest)), kFulfilledRequest);
}

// coordination.17.35: Zuul and Jenkins leave keys out and add their own.
TEST(NodeRequest, AZuulRequestGetsAllKeysAtTheFirstWrite) {
  NodeRequest request = ParsedRequest(
      R"({"requestor_data": {"job_name": "j"}, "node_types": ["a"], "requestor": "sys", "created_time": 17, )"
      R"("provider": "p", "state": "requested", "state_time": 1726605931, "relative_priority": 2, )"
      R"("event_id": null, "tenant_name": "t", "jenkins_label": "jl", "build_id": 4})");
  EXPECT_EQ(request.state, RequestState::kRequested);
  EXPECT_EQ(request.provider, ProviderName("p"));
  EXPECT_TRUE(request.reuse);
  EXPECT_EQ(request.created_time, FromSeconds(17));
  EXPECT_EQ(request.foreign.unknown, R"("jenkins_label": "jl", "build_id": 4)");
  json::object written = *ParseJsonObject(ToJson(request));
  EXPECT_EQ(written.size(), 13u + 2u);
  EXPECT_EQ(written["declined_by"], json::array());
  EXPECT_EQ(written["nodes"], json::array());
  EXPECT_EQ(written["build_id"], 4);
}

TEST(NodeRequest, MissingKeysHaveDefaults) {
  NodeRequest request = ParsedRequest("{}");
  EXPECT_EQ(request.state, std::nullopt);
  EXPECT_EQ(request.state_time, kRequestNow);
  EXPECT_TRUE(request.reuse);
  EXPECT_EQ(request.relative_priority, 0);
  EXPECT_TRUE(request.requestor_data.is_null());
  EXPECT_FALSE(ParsedRequest(R"({"reuse": false})").reuse);
}

// coordination.md 4.3, D-08: a priority that is not a number must block no other request.
TEST(NodeRequest, AMalformedPriorityIsTheWorst) {
  EXPECT_EQ(ParsedRequest(R"({"relative_priority": 3})").relative_priority, 3);
  for (std::string_view value : {"null", "\"1\"", "[]", "NaN"}) {
    EXPECT_EQ(ParsedRequest(fmt::format(R"({{"relative_priority": {}}})", value)).relative_priority,
              2147483647)
        << value;
  }
}

TEST(NodeRequest, APriorityIsAnyNumberAndIsWrittenBackUnchanged) {
  for (std::string_view value : {"1.5", "3", "-2.50", "1e3", "Infinity", "18446744073709551616", "null"}) {
    NodeRequest request = ParsedRequest(fmt::format(R"({{"relative_priority": {}}})", value));
    EXPECT_NE(ToJson(request).find(fmt::format(R"("relative_priority": {},)", value)), std::string::npos)
        << value;
  }
  EXPECT_EQ(ParsedRequest(R"({"relative_priority": 1.5})").relative_priority, 1.5);
  EXPECT_EQ(ParsedRequest(R"({"relative_priority": -Infinity})").relative_priority,
            -std::numeric_limits<double>::infinity());
  NodeRequest ours;
  ours.relative_priority = 7;
  EXPECT_NE(ToJson(ours).find(R"("relative_priority": 7,)"), std::string::npos);
}

TEST(NodeRequest, FaultsNameTheKey) {
  EXPECT_EQ(RequestFault(R"({"state": "ready"})"),
            R"("state" is "ready", which is not a state of this kind of record)");
  EXPECT_EQ(RequestFault(R"({"state": 1})"), R"("state" is 1, which is not a state of this kind of record)");
  EXPECT_EQ(RequestFault(R"({"node_types": "small"})"), R"("node_types" is not a list of texts)");
  EXPECT_EQ(RequestFault(R"({"node_types": ["a", null]})"), R"("node_types" is not a list of texts)");
  EXPECT_EQ(RequestFault(R"({"declined_by": {}})"), R"("declined_by" is not a list of texts)");
  EXPECT_EQ(RequestFault(R"({"provider": 1})"), R"("provider" is not a text or null)");
  EXPECT_EQ(RequestFault(R"({"reuse": "yes"})"), R"("reuse" is not true or false)");
}

TEST(NodeRequest, KnowsWhoDeclined) {
  NodeRequest request;
  request.declined_by.emplace_back("a");
  EXPECT_TRUE(request.WasDeclinedBy(LauncherId("a")));
  EXPECT_FALSE(request.WasDeclinedBy(LauncherId("b")));
}

// coordination.md 3.2
TEST(RequestId, IsSplitAtItsFirstDash) {
  std::optional<RequestIdParts> parts = ParseRequestId(RequestId("200-0000000012"));
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->precedence, "200");
  EXPECT_EQ(parts->sequence, "0000000012");
  for (std::string_view id : {"", "200", "-", "200-", "-1", "200-1-2", "200--", "200--1-", "200--x"}) {
    EXPECT_FALSE(ParseRequestId(RequestId(std::string(id)))) << id;
  }
  EXPECT_EQ(ParseRequestId(RequestId("200--2147483648"))->sequence, "-2147483648") << "after 2147483647";
}

}  // namespace
}  // namespace nodepool
