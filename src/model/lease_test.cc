#include "model/lease.h"

#include <gtest/gtest.h>

namespace nodepool {
namespace {

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
