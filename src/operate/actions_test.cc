#include "operate/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/cache/cached_records.h"
#include "store/store_for_test.h"

namespace nodepool::operate {

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Refusal::Kind;
using std::chrono::seconds;

class OperateNodesTest : public ::testing::Test {
 protected:
  NodeId Add(NodeState state) {
    Node node = store::InitNode();
    node.SetState(state, world_.time.loop().Now());
    node.comment = "before";
    node.hold_expiration = 60;
    return world_.Run(world_.store.nodes.Create(std::move(node)));
  }
  Node Read(const NodeId& id) { return world_.Run(world_.store.nodes.Read(id))->record; }
  Loop& loop() { return world_.time.loop(); }

  store::World world_;
};

// ACT-9
TEST_F(OperateNodesTest, AHoldHasReasonAndTime) {
  NodeId id = Add(NodeState::kReady);
  EXPECT_TRUE(world_.Run(HoldNode(loop(), world_.store, id, {"bug 7", 3600}, seconds(5))));
  EXPECT_EQ(Read(id).state, NodeState::kHold);
  EXPECT_EQ(Read(id).comment, "bug 7");
  EXPECT_EQ(Read(id).hold_expiration, 3600);
  EXPECT_TRUE(world_.Run(HoldNode(loop(), world_.store, id, {}, seconds(5))));
  EXPECT_EQ(Read(id).comment, "bug 7") << "what is not given stays";
  EXPECT_EQ(Read(id).hold_expiration, 3600);
  EXPECT_THAT(world_.Run(world_.store.nodes.Contenders(id)), IsEmpty());
}

// ACT-9
TEST_F(OperateNodesTest, AHoldEndsOnce) {
  NodeId id = Add(NodeState::kHold);
  EXPECT_TRUE(world_.Run(EndHold(loop(), world_.store, id, seconds(5))));
  EXPECT_EQ(Read(id).state, NodeState::kUsed);
  Done again = world_.Run(EndHold(loop(), world_.store, id, seconds(5)));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, Kind::kConflict);
  EXPECT_EQ(again.error().why, "Node 0000000000 is not held");
  EXPECT_EQ(Read(id).state, NodeState::kUsed);
}

// ACT-9
TEST_F(OperateNodesTest, ALockedNodeStaysAsItIs) {
  NodeId id = Add(NodeState::kInUse);
  auto lock = world_.Run(world_.store.nodes.TryLock(id));
  SteadyTime start = loop().SteadyNow();
  Done deleted = world_.Run(DeleteNode(loop(), world_.store, id, seconds(1)));
  ASSERT_FALSE(deleted);
  EXPECT_EQ(deleted.error().kind, Kind::kConflict);
  EXPECT_THAT(deleted.error().why, HasSubstr("the node is in use"));
  EXPECT_EQ(loop().SteadyNow() - start, seconds(1));
  EXPECT_EQ(Read(id).state, NodeState::kInUse);
  EXPECT_EQ(world_.Run(world_.store.nodes.Contenders(id)).size(), 1u) << "nothing of ours is left";
  world_.Run(lock->Unlock());
  EXPECT_TRUE(world_.Run(DeleteNode(loop(), world_.store, id, seconds(1))));
  EXPECT_EQ(Read(id).state, NodeState::kDeleting);
}

// ACT-9
TEST_F(OperateNodesTest, AMissingNodeIsNotCreated) {
  Done held = world_.Run(HoldNode(loop(), world_.store, NodeId("0000000042"), {}, seconds(1)));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().kind, Kind::kNotFound);
  EXPECT_FALSE(world_.Exists("/nodepool"));
}

TEST(OperateNodeIds, AreUpToTenDigits) {
  EXPECT_EQ(ParseNodeId("42"), NodeId("0000000042"));
  for (const char* bad : {"", "x", "-1", "..", "00000000420", "4/2", "42 "})
    EXPECT_FALSE(ParseNodeId(bad)) << bad;
}

class OperateProvidersTest : public ::testing::Test {
 protected:
  void SetUp() override { config_.providers[ProviderName("cloud")] = nullptr; }

  store::World world_;
  driver::LoadedConfig config_;
};

// ACT-1
TEST_F(OperateProvidersTest, OnlyConfiguredProvidersArePaused) {
  Done paused =
      world_.Run(PauseProvider(world_.time.loop(), world_.store, config_, ProviderName("clod"), {}));
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().kind, Refusal::Kind::kNotFound);
  EXPECT_FALSE(world_.Exists("/nodepool"));
  EXPECT_TRUE(
      world_.Run(PauseProvider(world_.time.loop(), world_.store, config_, ProviderName("cloud"), {})));
  EXPECT_TRUE(world_.Exists("/nodepool/paused-providers/cloud"));
}

// ACT-2
TEST_F(OperateProvidersTest, TheSwitchOfARemovedProviderCanBeRemoved) {
  world_.Run(world_.store.provider_pauses.Pause(ProviderName("gone"), {}));
  EXPECT_TRUE(world_.Run(UnpauseProvider(world_.store, ProviderName("gone"))));
  for (const char* missing : {"gone", "cloud", ""}) {
    Done unpaused = world_.Run(UnpauseProvider(world_.store, ProviderName(missing)));
    ASSERT_FALSE(unpaused);
    EXPECT_EQ(unpaused.error().kind, Refusal::Kind::kNotFound);
  }
}

class OperateImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.common.diskimages[image_].name = image_;
    auto provider = std::make_shared<driver::ProviderConfig>();
    provider->name = provider_;
    provider->manages_images = true;
    provider->diskimages[image_] = std::make_shared<driver::ProviderDiskImage>();
    config_.providers[provider_] = provider;
    config_.providers[ProviderName("bare")] = std::make_shared<driver::ProviderConfig>();
  }
  store::BuildKey AddBuild(ImageState state, double time = 1'700'000'000) {
    ImageBuild record;
    record.state = state;
    record.state_time = FromSeconds(time);
    store::BuildKey key{image_, BuildId("b" + std::to_string(++builds_))};
    world_.Put("/nodepool/images/debian/builds/" + key.build.value, ToJson(record));
    return key;
  }
  store::UploadKey AddUpload(const store::BuildKey& build, ImageState state) {
    ImageUpload record;
    record.state = state;
    record.state_time = FromSeconds(1'700'000'000);
    world_.Put("/nodepool/images/debian/builds/" + build.build.value + "/providers/cloud/images/0000000001",
               ToJson(record));
    return {build, provider_, UploadId("0000000001")};
  }
  std::expected<bool, Refusal> Retry(const std::string& provider = "cloud") {
    return world_.Run(RetryUpload(world_.store, config_, image_, ProviderName(provider)));
  }

  store::World world_;
  driver::LoadedConfig config_;
  ImageName image_{"debian"};
  ProviderName provider_{"cloud"};
  int builds_ = 0;
};

// ACT-10
TEST_F(OperateImagesTest, ABuildIsAskedForOfConfiguredImagesOnly) {
  EXPECT_TRUE(world_.Run(RequestBuild(world_.store, config_, image_)));
  EXPECT_TRUE(world_.Exists("/nodepool/images/debian/request-build"));
  for (const char* bad : {"unknown", "", "..", "a/b"}) {
    Done asked = world_.Run(RequestBuild(world_.store, config_, ImageName(bad)));
    ASSERT_FALSE(asked) << bad;
    EXPECT_THAT(asked.error().why, HasSubstr("is not one of the configured diskimages"));
  }
  config_.common.diskimages[image_].is_paused = true;
  EXPECT_EQ(world_.Run(RequestBuild(world_.store, config_, image_)).error().kind, Kind::kConflict);
}

// ACT-10
TEST_F(OperateImagesTest, AnImageIsPausedOnceItIsKnown) {
  for (const char* bad : {"debian", "", ".", "..", "a/b"}) {
    Done paused = world_.Run(PauseImage(world_.store, ImageName(bad)));
    ASSERT_FALSE(paused) << bad;
    EXPECT_EQ(paused.error().kind, Kind::kNotFound);
  }
  AddBuild(ImageState::kReady);
  EXPECT_TRUE(world_.Run(PauseImage(world_.store, image_)));
  EXPECT_TRUE(world_.Exists("/nodepool/images/debian/pause"));
  world_.Run(UnpauseImage(world_.store, image_));
  world_.Run(UnpauseImage(world_.store, ImageName("../nodes")));
  EXPECT_FALSE(world_.Exists("/nodepool/images/debian/pause"));
}

// ACT-10
TEST_F(OperateImagesTest, BuildsAndUploadsInProgressAreNotDeleted) {
  store::BuildKey building = AddBuild(ImageState::kBuilding);
  EXPECT_EQ(world_.Run(DeleteBuild(world_.time.loop(), world_.store, building)).error().kind,
            Kind::kConflict);
  store::BuildKey ready = AddBuild(ImageState::kReady);
  store::UploadKey upload = AddUpload(ready, ImageState::kUploading);
  EXPECT_EQ(world_.Run(DeleteUpload(world_.time.loop(), world_.store, upload)).error().kind, Kind::kConflict);
  AddUpload(ready, ImageState::kReady);
  EXPECT_TRUE(world_.Run(DeleteUpload(world_.time.loop(), world_.store, upload)));
  EXPECT_EQ(world_.Run(world_.store.images.ReadUpload(upload))->record.state, ImageState::kDeleting);
  EXPECT_TRUE(world_.Run(DeleteUpload(world_.time.loop(), world_.store, upload, true)));
  EXPECT_EQ(world_.Run(DeleteUpload(world_.time.loop(), world_.store, upload)).error().kind, Kind::kNotFound);
  EXPECT_TRUE(world_.Run(DeleteBuild(world_.time.loop(), world_.store, ready)));
  EXPECT_EQ(world_.Run(world_.store.images.ReadBuild(ready))->record.state, ImageState::kDeleting);
}

// ACT-12
TEST_F(OperateImagesTest, NamesAreNoPaths) {
  AddBuild(ImageState::kReady);
  for (const char* bad : {"..", ".", "", "debian/builds", "b1/../b1", "b1\r\n", "\xff"}) {
    EXPECT_EQ(world_.Run(DeleteBuild(world_.time.loop(), world_.store, {image_, BuildId(bad)})).error().kind,
              Kind::kNotFound)
        << bad;
    store::UploadKey key{{image_, BuildId("b1")}, ProviderName(bad), UploadId("0000000001")};
    EXPECT_EQ(world_.Run(DeleteUpload(world_.time.loop(), world_.store, key, true)).error().kind,
              Kind::kNotFound)
        << bad;
  }
}

// ACT-8
TEST_F(OperateImagesTest, ARetryIsOfTheNewestBuildThatIsMissing) {
  EXPECT_THAT(Retry().error().why, HasSubstr("has no ready build"));
  AddBuild(ImageState::kReady, 1'600'000'000);
  store::BuildKey newest = AddBuild(ImageState::kReady);
  EXPECT_EQ(Retry("unknown").error().kind, Kind::kNotFound);
  EXPECT_EQ(Retry("bare").error().kind, Kind::kConflict);
  AddUpload(newest, ImageState::kFailed);
  store::ImageCache cache(world_.time.loop(), world_.faulty);
  cache.Start();
  EXPECT_TRUE(*Retry());
  EXPECT_TRUE(*Retry());
  world_.Run(cache.WaitSynced());
  EXPECT_EQ(cache.UploadRetries(newest, provider_), 2);
  EXPECT_EQ(cache.UploadRetries(newest, ProviderName("bare")), 0);
  EXPECT_TRUE(*Retry());
  world_.Run(cache.CatchUp());
  EXPECT_EQ(cache.UploadRetries(newest, provider_), 3);
  AddUpload(newest, ImageState::kReady);
  EXPECT_FALSE(*Retry());
  world_.Run(cache.CatchUp());
  EXPECT_EQ(cache.UploadRetries(newest, provider_), 3);
  world_.Run(cache.Stop());
}

}  // namespace

}  // namespace nodepool::operate
