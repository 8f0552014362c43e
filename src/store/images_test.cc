#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/image_data.h"
#include "store/store_for_test.h"
#include "store/whole_tree.h"

namespace nodepool::store {

namespace {

using ::testing::ElementsAre;
using Fault = testing::FaultyZk::Fault;

const ImageName kImage("debian");
const ProviderName kCloud("cloud");

ImageBuild Building() {
  ImageBuild build;
  build.state = ImageState::kBuilding;
  build.formats = {"qcow2"};
  return build;
}

ImageUpload Uploading() {
  ImageUpload upload;
  upload.state = ImageState::kUploading;
  return upload;
}

template <class Record>
std::function<Change(Record&)> To(ImageState state) {
  return [state](Record& record) {
    record.state = state;
    return Change::kWrite;
  };
}

class StoreImagesTest : public ::testing::Test {
 protected:
  zk::HeldLock LockImage() { return *w.Run(w.store.images.TryLock(kImage)); }
  StoredBuild CreateBuild() {
    zk::HeldLock lock = LockImage();
    StoredBuild build = w.Run(w.store.images.CreateBuild(kImage, Building(), lock));
    w.Run(w.store.images.Update(build, lock, To<ImageBuild>(ImageState::kReady)));
    w.Run(w.store.tree.Unlock(lock));
    return build;
  }
  StoredUpload CreateUpload(const StoredBuild& build) {
    zk::HeldLock lock = *w.Run(w.store.images.TryLockUploads(build.id, kCloud));
    StoredUpload upload = w.Run(w.store.images.CreateUpload(build.id, kCloud, Uploading(), lock));
    w.Run(w.store.images.Update(upload, lock, To<ImageUpload>(ImageState::kReady)));
    w.Run(w.store.tree.Unlock(lock));
    return upload;
  }

  World w;
};

// ACT-8
TEST_F(StoreImagesTest, AnUploadIsAskedForWhereNoneHasBegun) {
  StoredBuild build = CreateBuild();
  w.Run(w.store.images.RetryUpload(build.id, kCloud));
  EXPECT_TRUE(w.Exists("/nodepool/images/debian/builds/" + build.id.build.value + "/providers/cloud"));
  BuildKey absent{kImage, BuildId("none")};
  EXPECT_THROW(w.Run(w.store.images.RetryUpload(absent, kCloud)), Error);
}

// coordination.17.29
TEST_F(StoreImagesTest, BuildsAndUploadsHaveTheDocumentedPaths) {
  StoredBuild build = CreateBuild();
  StoredUpload upload = CreateUpload(build);
  std::string path = "/nodepool/images/debian/builds/" + build.id.build.value;
  EXPECT_EQ(build.id.build.value.size(), 32u);
  EXPECT_EQ(upload.id.upload.value, "0000000001");
  EXPECT_TRUE(w.Exists("/nodepool/images/debian/builds/lock"));
  EXPECT_TRUE(w.Exists(path + "/providers/cloud/images/lock"));
  EXPECT_THAT(w.Data(path), ::testing::HasSubstr("\"state\": \"ready\""));
  EXPECT_EQ(w.Run(w.store.images.ReadUpload(upload.id))->record.state, ImageState::kReady);
  EXPECT_EQ(w.Run(w.store.images.ListBuilds(kImage)).size(), 1u);
  EXPECT_EQ(w.Run(w.store.images.ListUploads(build.id, kCloud)).size(), 1u);
}

// B-locks
TEST_F(StoreImagesTest, LocksExclude) {
  StoredBuild build = CreateBuild();
  StoredUpload upload = CreateUpload(build);
  zk::HeldLock image = LockImage();
  zk::HeldLock marks = *w.Run(w.store.images.TryLockBuild(build.id));
  zk::HeldLock uploads = *w.Run(w.store.images.TryLockUploads(build.id, kCloud));
  zk::HeldLock number = *w.Run(w.store.images.TryLockUpload(upload.id));
  EXPECT_FALSE(w.Run(w.store.images.TryLock(kImage)));
  EXPECT_FALSE(w.Run(w.store.images.TryLockBuild(build.id)));
  EXPECT_FALSE(w.Run(w.store.images.TryLockUploads(build.id, kCloud)));
  EXPECT_FALSE(w.Run(w.store.images.TryLockUpload(upload.id)));
  EXPECT_TRUE(w.Run(w.store.images.TryLockUploads(build.id, ProviderName("other"))));
  for (const zk::HeldLock& lock : {image, marks, uploads, number}) w.Run(w.store.tree.Unlock(lock));
  EXPECT_TRUE(w.Run(w.store.images.TryLockUpload(upload.id)));
}

// D-07: an attempt to lock a missing record leaves nothing.
TEST_F(StoreImagesTest, LockingAMissingRecordCreatesNothing) {
  BuildKey build{kImage, BuildId("gone")};
  EXPECT_FALSE(w.Run(w.store.images.TryLockBuild(build)));
  EXPECT_FALSE(w.Run(w.store.images.TryLockUploads(build, kCloud)));
  EXPECT_FALSE(w.Run(w.store.images.TryLockUpload({build, kCloud, UploadId("0000000001")})));
  EXPECT_FALSE(w.Exists("/nodepool"));
}

TEST_F(StoreImagesTest, NothingIsWrittenWithoutTheLock) {
  zk::HeldLock lock = LockImage();
  StoredBuild build = w.Run(w.store.images.CreateBuild(kImage, Building(), lock));
  w.Run(w.store.tree.Unlock(lock));
  auto update = [&] { w.Run(w.store.images.Update(build, lock, To<ImageBuild>(ImageState::kReady))); };
  EXPECT_EQ(VerdictThrown(update), Verdict::kLostSession);
  auto create = [&] { w.Run(w.store.images.CreateBuild(kImage, Building(), lock)); };
  EXPECT_EQ(VerdictThrown(create), Verdict::kLostSession);
  lock = LockImage();
  w.memory.ExpireSession(*w.client);
  w.time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(VerdictThrown(update), Verdict::kLostSession);
  EXPECT_EQ(w.Run(w.store.images.ReadBuild(build.id))->record.state, ImageState::kBuilding);
}

TEST_F(StoreImagesTest, AChangedRecordIsReadAgainAndChanged) {
  zk::HeldLock lock = LockImage();
  StoredBuild build = w.Run(w.store.images.CreateBuild(kImage, Building(), lock));
  w.Put("/nodepool/images/debian/builds/" + build.id.build.value,
        R"({"state": "deleting", "state_time": 1, "more": 2})");
  auto change = [](ImageBuild& record) {
    return record.state == ImageState::kDeleting ? Change::kSkip : Change::kWrite;
  };
  EXPECT_FALSE(w.Run(w.store.images.Update(build, lock, change)));
  // D-04: keys of other programs remain.
  EXPECT_TRUE(w.Run(w.store.images.UpdateUnlocked(build, To<ImageBuild>(ImageState::kReady))));
  EXPECT_THAT(w.Data("/nodepool/images/debian/builds/" + build.id.build.value),
              ::testing::HasSubstr("\"more\": 2"));
}

// B-delete-with-uploads, B-empty-nodes, B-locks
TEST_F(StoreImagesTest, ABuildWithUploadsIsNotRemoved) {
  StoredBuild build = CreateBuild();
  StoredUpload upload = CreateUpload(build);
  EXPECT_FALSE(w.Run(w.store.images.RemoveBuild(build.id)));
  zk::HeldLock number = *w.Run(w.store.images.TryLockUpload(upload.id));
  w.Run(w.store.images.RemoveUpload(upload.id));
  w.Run(w.store.tree.Unlock(number));
  EXPECT_FALSE(w.Run(w.store.images.ReadUpload(upload.id)));
  // Left by a client that locked a removed upload.
  w.Put("/nodepool/images/debian/builds/" + build.id.build.value + "/providers/cloud/images/0000000001/lock",
        "");
  EXPECT_EQ(VerdictThrown([&] { w.Run(w.store.images.ReadUpload(upload.id)); }), Verdict::kInvalid);
  EXPECT_TRUE(w.Run(w.store.images.RemoveBuild(build.id)));
  EXPECT_FALSE(w.Run(w.store.images.BuildExists(build.id)));
}

// D-44
TEST_F(StoreImagesTest, AnImageIsRemovedOnlyWhenNothingIsLeftOfIt) {
  StoredBuild build = CreateBuild();
  EXPECT_FALSE(w.Run(w.store.images.Remove(kImage)));
  EXPECT_TRUE(w.Run(w.store.images.BuildExists(build.id)));
  w.Run(w.store.images.RemoveBuild(build.id));
  zk::HeldLock lock = LockImage();
  EXPECT_FALSE(w.Run(w.store.images.Remove(kImage)));
  w.Run(w.store.tree.Unlock(lock));
  w.Run(w.store.images.Pause(kImage));
  EXPECT_TRUE(w.Run(w.store.images.Remove(kImage)));
  EXPECT_THAT(w.Children("/nodepool/images"), ElementsAre());
}

TEST_F(StoreImagesTest, PausingAndRequestingMayBeRepeated) {
  EXPECT_EQ(VerdictThrown([&] { w.Run(w.store.images.Pause(kImage)); }), Verdict::kNotFound);
  for (int i = 0; i < 2; ++i) w.Run(w.store.images.RequestBuild(kImage));
  for (int i = 0; i < 2; ++i) w.Run(w.store.images.Pause(kImage));
  EXPECT_THAT(w.Children("/nodepool/images/debian"), ElementsAre("pause", "request-build"));
  Revision request = w.Run(w.store.images.ReadBuildRequest(kImage)).value();
  for (int i = 0; i < 2; ++i) w.Run(w.store.images.RemoveBuildRequest(kImage, request));
  EXPECT_FALSE(w.Run(w.store.images.ReadBuildRequest(kImage)));
  for (int i = 0; i < 2; ++i) w.Run(w.store.images.Unpause(kImage));
  EXPECT_THAT(w.Children("/nodepool/images/debian"), ElementsAre());
}

TEST_F(StoreImagesTest, OnlyTheRequestThatWasSeenIsRemoved) {
  std::string path = "/nodepool/images/debian/request-build";
  w.Run(w.store.images.RequestBuild(kImage));
  Revision first = w.Run(w.store.images.ReadBuildRequest(kImage)).value();
  w.Run(w.store.images.RequestBuild(kImage));
  EXPECT_EQ(w.Run(w.store.images.ReadBuildRequest(kImage)).value().mzxid, first.mzxid)
      << "it is still the same";
  w.Erase(path);
  w.Run(w.store.images.RequestBuild(kImage));
  w.Run(w.store.images.RemoveBuildRequest(kImage, first));
  Revision second = w.Run(w.store.images.ReadBuildRequest(kImage)).value();
  w.Put(path, "by another program");
  w.Run(w.store.images.RemoveBuildRequest(kImage, second));
  Revision third = w.Run(w.store.images.ReadBuildRequest(kImage)).value();
  w.Run(w.store.images.RemoveBuildRequest(kImage, third));
  EXPECT_FALSE(w.Run(w.store.images.ReadBuildRequest(kImage)));
}

// coordination.17.34, B-export-import
TEST_F(StoreImagesTest, WhatIsExportedCanBeImported) {
  StoredBuild build = CreateBuild();
  CreateUpload(build);
  StoredUpload upload = CreateUpload(build);
  w.Run(w.store.images.Pause(kImage));
  w.Run(w.store.images.RequestBuild(kImage));
  std::map<std::string, std::string> data = w.Run(store::ExportImages(w.store));
  EXPECT_EQ(data.size(), 4u) << "no request";
  w.Erase("/nodepool/images");
  w.Run(store::ImportImages(w.store, data));
  EXPECT_EQ(w.Run(store::ExportImages(w.store)), data);
  EXPECT_EQ(upload.id.upload.value, "0000000002");
  EXPECT_EQ(CreateUpload(build).id.upload.value, "0000000004");
  EXPECT_EQ(VerdictThrown([&] {
              w.Run(store::ImportImages(w.store, {{"/nodepool/nodes/1", "{}"}}));
            }),
            Verdict::kInvalid);
}

// The numbers of later uploads are those that the Python implementation's import makes
// (coordination.md 14.4): as many children as the greatest number, then what is missing, then
// the lock's directory.
TEST_F(StoreImagesTest, NumbersAfterAnImport) {
  auto next_after = [&](const std::vector<std::string>& numbers) {
    std::string build = "/nodepool/images/debian/builds/" + std::string(32, 'a');
    std::map<std::string, std::string> data = {{build, R"({"state": "ready"})"}};
    for (const std::string& number : numbers) {
      data[build + "/providers/cloud/images/" + number] = R"({"state": "ready"})";
    }
    w.Run(store::ImportImages(w.store, data));
    EXPECT_EQ(w.Run(store::ExportImages(w.store)), data);
    StoredUpload next = CreateUpload({{kImage, BuildId(std::string(32, 'a'))}, {}, {}});
    w.Erase("/nodepool/images");
    return next.id.upload.value;
  };
  EXPECT_EQ(next_after({"0000000001"}), "0000000003");
  EXPECT_EQ(next_after({"0000000003"}), "0000000005");
  EXPECT_EQ(next_after({"0000000001", "0000000003"}), "0000000005");
  EXPECT_EQ(next_after({"0000000000"}), "0000000002");
}

// A connection that breaks at any call changes nothing about the outcome.
TEST_F(StoreImagesTest, FaultsAtAnyCall) {
  for (Fault fault : {Fault::kBefore, Fault::kAfter}) {
    for (std::size_t n = 0; n < 40; ++n) {
      World world;
      world.faulty.FailNth(n, fault);
      zk::HeldLock lock = *world.Run(world.store.images.TryLock(kImage));
      StoredBuild build = world.Run(world.store.images.CreateBuild(kImage, Building(), lock));
      world.Run(world.store.images.Update(build, lock, To<ImageBuild>(ImageState::kReady)));
      world.Run(world.store.tree.Unlock(lock));
      zk::HeldLock uploads = *world.Run(world.store.images.TryLockUploads(build.id, kCloud));
      StoredUpload upload =
          world.Run(world.store.images.CreateUpload(build.id, kCloud, Uploading(), uploads));
      world.Run(world.store.images.Update(upload, uploads, To<ImageUpload>(ImageState::kReady)));
      world.Run(world.store.tree.Unlock(uploads));
      EXPECT_EQ(world.Run(world.store.images.ListBuilds(kImage)).size(), 1u) << n;
      EXPECT_EQ(world.Run(world.store.images.ListUploads(build.id, kCloud)).size(), 1u) << n;
      world.Run(world.store.images.RemoveUpload(upload.id));
      EXPECT_TRUE(world.Run(world.store.images.RemoveBuild(build.id))) << n;
      EXPECT_TRUE(world.Run(world.store.images.Remove(kImage))) << n;
      EXPECT_THAT(world.Children("/nodepool/images"), ElementsAre()) << n;
    }
  }
}

TEST(RecordCountsTest, RecordsAreCountedByKind) {
  RecordCounts counts;
  for (const char* path :
       {"/nodepool", "/nodepool/nodes", "/nodepool/nodes/0000000001", "/nodepool/nodes/0000000002",
        "/nodepool/nodes/0000000002/lock", "/nodepool/requests/200-0000000000", "/nodepool/images/deb",
        "/nodepool/images/deb/builds/0000000001", "/nodepool/images/deb/builds/0000000001/providers/p",
        "/nodepool/images/deb/builds/0000000001/providers/p/images/0000000001", "/nodepool/images/fed/pause",
        "/nodepool/components/launcher/x", "/zuul/nodes"}) {
    counts.Add(path);
  }
  EXPECT_EQ(counts.nodes, 2U);
  EXPECT_EQ(counts.requests, 1U);
  EXPECT_EQ(counts.images.size(), 2U);
  EXPECT_EQ(counts.builds, 1U);
  EXPECT_EQ(counts.uploads, 1U);
}

const ImageName kFormerImage("debian");
const ProviderName kFormerCloud("cloud");

class FormerRecordsTest : public ::testing::Test {
 protected:
  FormerRecordsTest() {
    images_.Start();
    w_.Run(images_.WaitSynced());
  }
  ~FormerRecordsTest() override { w_.Run(images_.Stop()); }

  // Its last state began so long after its znode was made.
  StoredBuild MakeBuild(Duration after_znode) {
    ImageBuild record;
    record.state = ImageState::kReady;
    record.state_time = w_.time.loop().Now() + after_znode;
    zk::HeldLock lock = *w_.Run(w_.store.images.TryLock(kFormerImage));
    StoredBuild build = w_.Run(w_.store.images.CreateBuild(kFormerImage, record, lock));
    w_.Run(w_.store.tree.Unlock(lock));
    w_.time.RunUntil([&] { return images_.builds().contains(build.id); });
    return build;
  }
  UploadKey MakeUpload(const BuildKey& build) {
    zk::HeldLock lock = *w_.Run(w_.store.images.TryLockUploads(build, kFormerCloud));
    StoredUpload upload = w_.Run(w_.store.images.CreateUpload(build, kFormerCloud, {}, lock));
    w_.Run(w_.store.tree.Unlock(lock));
    return upload.id;
  }
  bool WasRemoved(const UploadKey& upload) {
    return w_.Run(WasUploadRemoved(w_.store, images_, upload.build.build, upload.provider, upload.upload));
  }

  World w_;
  ImageCache images_{w_.time.loop(), *w_.client};
};

// D-99
TEST_F(FormerRecordsTest, TheTreeShowsWhichUploadsItHad) {
  StoredBuild build = MakeBuild(std::chrono::minutes(1));
  UploadKey upload = MakeUpload(build.id);
  EXPECT_FALSE(WasRemoved(upload)) << "it is there";
  w_.Run(w_.store.images.RemoveUpload(upload));
  EXPECT_TRUE(WasRemoved(upload));
  UploadKey later = upload;
  later.upload = UploadId("0000000002");
  EXPECT_FALSE(WasRemoved(later)) << "no upload has had this number yet";
  UploadKey elsewhere = upload;
  elsewhere.provider = ProviderName("other");
  EXPECT_FALSE(WasRemoved(elsewhere));
  UploadKey of_other = upload;
  of_other.build.build = BuildId("0123456789abcdef0123456789abcdef");
  EXPECT_FALSE(WasRemoved(of_other)) << "of a build that the tree does not know";
}

// D-99
TEST_F(FormerRecordsTest, AnImportedBuildProvesNothing) {
  StoredBuild build = MakeBuild(-std::chrono::hours(1));
  EXPECT_FALSE(IsMadeHere(images_.builds().at(build.id)));
  UploadKey upload = MakeUpload(build.id);
  w_.Run(w_.store.images.RemoveUpload(upload));
  EXPECT_FALSE(WasRemoved(upload));
}

// D-99
TEST_F(FormerRecordsTest, TheTreeShowsWhichNodesItHad) {
  NodeId node = w_.Run(w_.store.nodes.Create({}));
  EXPECT_FALSE(w_.Run(WasNodeRemoved(w_.store, node)));
  w_.Erase("/nodepool/nodes/" + node.value);
  EXPECT_TRUE(w_.Run(WasNodeRemoved(w_.store, node)));
  for (const char* text : {"0000000001", "", "-000000001", "../../x", "lock", "99999999999"}) {
    NodeId other(text);
    EXPECT_FALSE(w_.Run(WasNodeRemoved(w_.store, other))) << text;
  }
}

}  // namespace

}  // namespace nodepool::store
