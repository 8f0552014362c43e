#include "web/live/change_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/decline_reasons.h"

namespace nodepool::web {
namespace {

const NodeId kNode("0000000012");
const RequestId kRequest("200-0000000001");
const WallTime kNow = FromSeconds(1'700'000'000);

Node NodeIn(NodeState state) {
  Node node;
  node.state = state;
  node.provider = ProviderName("cloud");
  node.type = {LabelName("small")};
  node.allocated_to = kRequest;
  return node;
}

std::string Becomes(NodeState before, NodeState after) {
  Node old = NodeIn(before);
  Node now = NodeIn(after);
  return TextOfChange(kNode, &old, &now);
}

// PAGE-5
TEST(ChangeText, Nodes) {
  Node building = NodeIn(NodeState::kBuilding);
  EXPECT_EQ(TextOfChange(kNode, nullptr, &building),
            "Node 0000000012 (small) is being launched in cloud for request 200-0000000001.");
  EXPECT_EQ(Becomes(NodeState::kBuilding, NodeState::kReady),
            "Node 0000000012 (small) in cloud is ready for request 200-0000000001.");
  EXPECT_EQ(Becomes(NodeState::kReady, NodeState::kInUse),
            "Node 0000000012 is in use for request 200-0000000001.");
  EXPECT_EQ(Becomes(NodeState::kInUse, NodeState::kUsed), "Node 0000000012 was given back.");
  EXPECT_EQ(Becomes(NodeState::kBuilding, NodeState::kFailed),
            "The launch of node 0000000012 in cloud failed.");
  EXPECT_EQ(Becomes(NodeState::kReady, NodeState::kReady), "");
  EXPECT_EQ(TextOfChange(kNode, &building, nullptr), "Node 0000000012 is gone.");
}

TEST(ChangeText, HeldAndAllocatedNodes) {
  Node held = NodeIn(NodeState::kHold);
  held.hold_job = "unit";
  held.comment = "see the log";
  EXPECT_EQ(TextOfChange(kNode, nullptr, &held), "Node 0000000012 is held for job unit: see the log.");
  Node free = NodeIn(NodeState::kReady);
  free.allocated_to = RequestId();
  Node allocated = NodeIn(NodeState::kReady);
  EXPECT_THAT(TextOfChange(kNode, &free, &allocated), ::testing::HasSubstr("for request 200-0000000001"));
  EXPECT_EQ(TextOfChange(kNode, &allocated, &free), "");
  held.comment = std::string(10'000, 'x');
  EXPECT_LT(TextOfChange(kNode, nullptr, &held).size(), 500u);
}

// PAGE-5
TEST(ChangeText, ShortStock) {
  const LabelName label("small");
  ShortStock first{kNow, "cloud main: missing 2 cores"}, later{kNow, "cloud main: missing 4.5 cores"},
      other{kNow, "cloud main: no flavor"};
  EXPECT_EQ(TextOfChange(label, nullptr, &first),
            "Label small is short of min-ready nodes: cloud main: missing 2 cores.");
  EXPECT_EQ(TextOfChange(label, &first, &later), "") << "the same cause";
  EXPECT_EQ(TextOfChange(label, &later, &other),
            "Label small is short of min-ready nodes: cloud main: no flavor.");
  EXPECT_EQ(TextOfChange(label, &other, nullptr), "Label small is not short of min-ready nodes any more.");
  NodeRequest request;
  request.SetState(RequestState::kRequested, kNow);
  request.requestor = std::string(kMinReadyRequestor);
  EXPECT_EQ(TextOfChange(kRequest, nullptr, &request, Duration()), "");
}

TEST(ChangeText, Requests) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, kNow);
  request.created_time = kNow;
  request.node_types = {LabelName("small"), LabelName("large"), LabelName("small")};
  request.requestor = "zuul";
  EXPECT_EQ(TextOfChange(kRequest, nullptr, &request, Duration(0)),
            "Request 200-0000000001 by zuul asks for large, 2 × small.");
  NodeRequest fulfilled = request;
  fulfilled.state = RequestState::kFulfilled;
  fulfilled.nodes = {kNode};
  EXPECT_EQ(TextOfChange(kRequest, &request, &fulfilled, std::chrono::milliseconds(2500)),
            "Request 200-0000000001 is fulfilled after 2.5 s with 0000000012.");
  NodeRequest failed = request;
  failed.state = RequestState::kFailed;
  AddDeclineReason(failed, "cloud main: no such label");
  EXPECT_EQ(TextOfChange(kRequest, &request, &failed, Duration(0)),
            "Request 200-0000000001 failed: cloud main: no such label.");
  EXPECT_EQ(TextOfChange(kRequest, &request, nullptr, Duration(0)), "Request 200-0000000001 was withdrawn.");
  EXPECT_EQ(TextOfChange(kRequest, &fulfilled, nullptr, Duration(0)), "");
}

TEST(ChangeText, Images) {
  store::BuildKey key{ImageName("deb"), BuildId("b1")};
  ImageBuild build;
  build.state = ImageState::kBuilding;
  EXPECT_EQ(TextOfChange(key, nullptr, &build), "Build deb-b1 has begun.");
  ImageBuild failed = build;
  failed.state = ImageState::kFailed;
  EXPECT_EQ(TextOfChange(key, &build, &failed), "Build deb-b1 failed.");
  ImageUpload upload;
  upload.state = ImageState::kReady;
  EXPECT_EQ(TextOfChange(store::UploadKey{key, ProviderName("cloud"), UploadId("1")}, nullptr, &upload),
            "The upload of deb-b1 to cloud is ready.");
}

TEST(ChangeText, ProvidersAndComponents) {
  ProviderReport up{ProviderState::kUp, kNow, "", {}};
  ProviderReport failing{ProviderState::kFailing, kNow, "no route", {}};
  ProviderName cloud("cloud");
  EXPECT_EQ(TextOfChange("np01", cloud, nullptr, &up), "The launcher on np01 can use provider cloud.");
  EXPECT_EQ(TextOfChange("np01", cloud, &up, &failing),
            "The launcher on np01 cannot use provider cloud: no route.");
  EXPECT_EQ(TextOfChange("np01", cloud, &failing, &failing), "");
  EXPECT_EQ(TextOfChange("np01", cloud, &up, nullptr),
            "The launcher on np01 no longer serves provider cloud.");
  Component builder;
  builder.kind = ComponentKind::kBuilder;
  builder.hostname = "nb01";
  EXPECT_EQ(TextOfChange(nullptr, &builder), "The builder on nb01 has registered.");
  EXPECT_EQ(TextOfChange(&builder, nullptr), "The builder on nb01 has left.");
  EXPECT_EQ(TextOfChange(&builder, &builder), "");
}

}  // namespace
}  // namespace nodepool::web
