#include "model/node_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/json.h"

namespace nodepool {

namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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

NodeRequest Reread(const NodeRequest& request) { return *ParseNodeRequest(ToJson(request), WallTime()); }

TEST(DeclineReasonsTest, AreReadBackFromTheRecord) {
  NodeRequest request;
  AddDeclineReason(request, "fake-cloud main: it has no label smal; did you mean small?");
  request = Reread(request);
  AddDeclineReason(request, "static-hosts main: it has no label smal");
  EXPECT_THAT(
      ToJson(request),
      HasSubstr(R"("decline_reasons": ["fake-cloud main: it has no label smal; did you mean small?", )"
                R"("static-hosts main: it has no label smal"])"));
  EXPECT_THAT(DeclineReasons(Reread(request)),
              ElementsAre("fake-cloud main: it has no label smal; did you mean small?",
                          "static-hosts main: it has no label smal"));
}

// coordination.md 4.3: what no pool has declined has no such key.
TEST(DeclineReasonsTest, ARequestWithoutADeclineHasNoKeyForThem) {
  NodeRequest request;
  AddDeclineReason(request, "");
  EXPECT_THAT(ToJson(request), Not(HasSubstr("decline_reasons")));
  EXPECT_THAT(DeclineReasons(request), IsEmpty());
}

TEST(DeclineReasonsTest, OtherUnknownKeysAreKept) {
  NodeRequest request =
      *ParseNodeRequest(R"({"jenkins_label": "a", "decline_reasons": 7, "x": {"y": 1}})", WallTime());
  EXPECT_THAT(DeclineReasons(request), IsEmpty());
  AddDeclineReason(request, "c p: full");
  EXPECT_EQ(request.foreign.unknown,
            R"("jenkins_label": "a", "x": {"y": 1}, "decline_reasons": ["c p: full"])");
}

TEST(DeclineReasonsTest, AreBounded) {
  NodeRequest request;
  AddDeclineReason(request, "c p: first\nsecond");
  AddDeclineReason(request, "c p: first second");
  EXPECT_THAT(DeclineReasons(request), ElementsAre("c p: first second"));
  AddDeclineReason(request, std::string(10'000, 'x'));
  EXPECT_THAT(DeclineReasons(request).back(), SizeIs(503)) << "cut, with three dots";
  for (int i = 0; i < 1000; ++i) AddDeclineReason(request, "reason " + std::to_string(i));
  EXPECT_THAT(DeclineReasons(request), SizeIs(100));
}

Lease Example() {
  Lease lease;
  lease.state = LeaseState::kHeld;
  lease.client = "ci";
  lease.labels = {LabelName("small"), LabelName("large")};
  lease.requestor = "job 7";
  lease.nodes = {NodeId("0000000001"), NodeId("0000000002")};
  lease.lease_seconds = 60;
  lease.created_time = FromSeconds(1'700'000'000);
  lease.renewed_time = FromSeconds(1'700'000'030);
  lease.asked = "ab";
  return lease;
}

const LeaseId kId(std::string(32, 'a'));

// REQ-2
TEST(LeaseTest, TheRecordIsAContract) {
  EXPECT_EQ(ToJson(Example()),
            R"({"state": "held", "client": "ci", "labels": ["small", "large"], "requestor": "job 7", )"
            R"("tenant_name": null, "request": null, "nodes": ["0000000001", "0000000002"], )"
            R"("lease_seconds": 60, "created_time": 1700000000.0, "renewed_time": 1700000030.0, )"
            R"("failure": null, "asked": "ab"})");
  Expected<Lease> read = ParseLease(ToJson(Example()));
  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), ToJson(Example()));
}

TEST(LeaseTest, UnknownKeysAreKept) {
  Expected<Lease> read = ParseLease(R"({"state": "failed", "client": "ci", "colour": "red"})");
  ASSERT_TRUE(read);
  EXPECT_NE(ToJson(*read).find(R"("colour": "red")"), std::string::npos);
}

TEST(LeaseTest, UselessRecordsAreRefused) {
  for (const char* bad :
       {"", "[]", "{}", R"({"state": "held"})", R"({"client": "ci"})", R"({"state": "lent", "client": "ci"})",
        R"({"state": "held", "client": "ci", "lease_seconds": 0})",
        R"({"state": "held", "client": "ci", "nodes": 7})"})
    EXPECT_FALSE(ParseLease(bad)) << bad;
}

TEST(LeaseTest, WaitingLeasesCountWhatTheyWaitFor) {
  Lease lease = Example();
  lease.nodes.pop_back();
  EXPECT_EQ(lease.node_count(), 1u);
  lease.state = LeaseState::kWaiting;
  EXPECT_EQ(lease.node_count(), 2u);
}

TEST(LeaseTest, AFailedOneDoesNotLastLong) {
  Lease lease = Example();
  lease.lease_seconds = 86'400;
  EXPECT_EQ(lease.duration(), std::chrono::hours(24));
  lease.state = LeaseState::kFailed;
  EXPECT_EQ(lease.duration(), std::chrono::minutes(5));
  lease.lease_seconds = 30;
  EXPECT_EQ(lease.duration(), std::chrono::seconds(30));
}

// REQ-19
TEST(LeaseTest, AHeldNodeNamesItsHolder) {
  Node node;
  PutInUse(node, kId, Example(), FromSeconds(1'700'000'000));
  MarkHeld(node);
  EXPECT_EQ(HolderOf(node), std::nullopt) << "in use";
  node.state = NodeState::kHold;
  EXPECT_EQ(HolderOf(node), "ci");
  EXPECT_EQ(LeaseOf(node), kId);
  PutInUse(node, kId, Example(), FromSeconds(1'700'000'000));
  node.state = NodeState::kHold;
  EXPECT_EQ(HolderOf(node), std::nullopt) << "an operator holds it";
  using boost::json::object;
  std::vector<RawJson> marks = {RawJson(), object{{"lease", kId.value}, {"held", true}},
                                object{{"client", "ci"}, {"held", true}},
                                object{{"lease", kId.value}, {"client", 7}, {"held", true}}};
  for (const RawJson& mark : marks) {
    node.user_data = mark;
    EXPECT_EQ(HolderOf(node), std::nullopt) << mark.text();
  }
  node.user_data = RawJson();
  MarkHeld(node);
  EXPECT_TRUE(node.user_data.is_null());
}

TEST(LeaseTest, AnIdIs32LowerCaseHexDigits) {
  EXPECT_TRUE(IsLeaseId(kId.value));
  for (std::string bad :
       {std::string(31, 'a'), std::string(33, 'a'), std::string(32, 'A'), std::string(32, 'g'), std::string(),
        std::string(30, 'a') + "/.", std::string(32, '\0')})
    EXPECT_FALSE(IsLeaseId(bad)) << bad;
}

TEST(LeaseTest, NodesAndRequestsNameTheirLease) {
  Node node;
  PutInUse(node, kId, Example(), FromSeconds(5));
  EXPECT_EQ(node.state, NodeState::kInUse);
  EXPECT_EQ(node.state_time, FromSeconds(5));
  EXPECT_EQ(LeaseOf(node), kId);
  NodeRequest request = RequestFor(kId, Example(), FromSeconds(5));
  EXPECT_EQ(request.event_id, kId.value);
  EXPECT_EQ(request.node_types, Example().labels);
  EXPECT_EQ(LeaseOf(request), kId);
  for (const char* data : {"null", "7", R"("lease")", "{}", R"({"lease": 7})", R"({"lease": "abc"})"}) {
    node.user_data = RawJson::OfText(data);
    EXPECT_EQ(LeaseOf(node), std::nullopt) << data;
  }
}

}  // namespace

}  // namespace nodepool
