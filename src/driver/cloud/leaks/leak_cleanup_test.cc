#include "driver/cloud/leaks/leak_cleanup.h"

#include <gmock/gmock.h>

#include "base/log/logging.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"
#include "store/image_data.h"

namespace nodepool::driver::cloud {

// Which leaked uploads, and resources that outlive a machine, are deleted.

namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const ImageName kImage("debian");

class LeakCleanupTest : public ProviderTest {
 protected:
  // As a builder does: the record is completed a while after it was created.
  store::BuildKey MakeBuild() {
    ImageBuild record;
    record.state = ImageState::kBuilding;
    zk::HeldLock lock = *time.Run(store.images.TryLock(kImage));
    store::StoredBuild build = time.Run(store.images.CreateBuild(kImage, record, lock));
    time.Advance(minutes(1));
    auto end = [this](ImageBuild& ended) {
      ended.state = ImageState::kReady;
      ended.state_time = time.loop().Now();
      return store::Change::kWrite;
    };
    time.Run(store.images.Update(build, lock, end));
    time.Run(store.tree.Unlock(lock));
    return build.id;
  }
  store::UploadKey MakeUpload(const store::BuildKey& build, std::string external_id = "") {
    ImageUpload record;
    record.state = ImageState::kReady;
    record.external_id = std::move(external_id);
    zk::HeldLock lock = *time.Run(store.images.TryLockUploads(build, config->name));
    store::StoredUpload upload = time.Run(store.images.CreateUpload(build, config->name, record, lock));
    time.Run(store.tree.Unlock(lock));
    return upload.id;
  }
  // An upload whose record was removed.
  store::UploadKey FormerUpload(const store::BuildKey& build) {
    store::UploadKey upload = MakeUpload(build);
    time.Run(store.images.RemoveUpload(upload));
    return upload;
  }
  void LoseTree() {
    time.Run(zk::DeleteRecursive(*client, "/nodepool/images"));
    time.Run(zk::DeleteRecursive(*client, "/nodepool/nodes"));
  }

  void Put(std::string type, std::string id, std::map<std::string, std::string> metadata) {
    metadata.emplace("nodepool_provider_name", "cloud");
    in_cloud_.push_back({std::move(type), std::move(id), std::move(metadata)});
  }
  void PutImage(std::string id, const store::UploadKey& upload, std::string type = "image") {
    Put(std::move(type), std::move(id),
        {{"nodepool_build_id", upload.build.build.str()}, {"nodepool_upload_id", upload.upload.str()}});
  }
  // What a launcher deletes in the three minutes after its start.
  std::vector<std::string> Sweep() {
    if (!provider) StartProvider();
    cloud->resources = in_cloud_;
    for (int i = 0; i < 3; ++i) {
      time.Advance(minutes(1));
      time.Run(provider->CleanupLeakedResources());
    }
    return cloud->deleted_resources;
  }

  std::vector<Resource> in_cloud_;
  log::Capture log_;
};

// It counted as used by others until the cloud has ended it.
TEST_F(LeakCleanupTest, WhatTheCloudHasEndedMeanwhileIsNoMoreCounted) {
  Put("server", "lost", {{"nodepool_node_id", "0000004711"}});
  StartProvider();
  cloud->resources = in_cloud_;
  cloud->deletion_fault = Verdict::kNotFound;
  time.Run(provider->CleanupLeakedResources());
  time.Advance(minutes(1));
  int asked = cloud->quota_asked;
  time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(cloud->deleted_resources, ElementsAre("lost"));
  time.Advance(minutes(1));
  EXPECT_EQ(cloud->quota_asked, asked + 1);
}

// The launcher was started after the record had been removed.
TEST_F(LeakCleanupTest, WhatABuilderLeftIsDeleted) {  // D-99
  store::BuildKey build = MakeBuild();
  PutImage("half", FormerUpload(build));
  PutImage("snapshot-of-half", FormerUpload(build), "snapshot");
  PutImage("good", MakeUpload(build, "good"));
  EXPECT_THAT(Sweep(), ElementsAre("half", "snapshot-of-half"));
  EXPECT_THAT(leaks, ElementsAre("1 images", "1 snapshots"));
}

// The cloud, or a proxy before it, has carried out a call twice.
TEST_F(LeakCleanupTest, ASecondImageOfTheSameAttemptIsDeleted) {  // D-99
  store::UploadKey upload = MakeUpload(MakeBuild(), "good");
  auto put = [&](std::string id, std::string attempt, std::string type) {
    PutImage(std::move(id), upload, std::move(type));
    if (!attempt.empty()) in_cloud_.back().metadata["nodepool_attempt"] = std::move(attempt);
  };
  put("good", "a1", "image");
  put("twin", "a1", "image");
  put("snapshot of good", "a1", "snapshot");
  put("of another installation", "b2", "image");
  put("of an old one", "", "image");
  EXPECT_THAT(Sweep(), ElementsAre("twin"));
  EXPECT_EQ(log_.Count("with this image"), 1);
}

TEST_F(LeakCleanupTest, ALostTreeDeletesNoImages) {  // D-99
  PutImage("one", MakeUpload(MakeBuild(), "one"));
  PutImage("two", MakeUpload(MakeBuild(), "two"));
  EXPECT_THAT(Sweep(), IsEmpty());
  LoseTree();
  EXPECT_THAT(Sweep(), IsEmpty());
  EXPECT_EQ(log_.Count("2 images (one, two) of provider cloud have our mark"), 1);
  // A builder starts again: the tree has one upload, and not the others.
  PutImage("three", MakeUpload(MakeBuild(), "three"));
  EXPECT_THAT(Sweep(), IsEmpty());
  EXPECT_EQ(log_.Count("have our mark"), 1) << "logged once";
}

// An operator restored an older copy of the server's data, in which the build had one upload.
TEST_F(LeakCleanupTest, ARestoredOldTreeDeletesNoImages) {  // D-99
  store::UploadKey upload = MakeUpload(MakeBuild(), "yesterday");
  PutImage("yesterday", upload);
  upload.upload = UploadId("0000000002");
  PutImage("today", upload);
  EXPECT_THAT(Sweep(), IsEmpty());
}

// The export is older than the second upload, whose number the import reuses.
TEST_F(LeakCleanupTest, AnImportDeletesNoImages) {  // D-99
  store::BuildKey build = MakeBuild();
  PutImage("exported", MakeUpload(build, "exported"));
  auto data = time.Run(store::ExportImages(store));
  PutImage("later", MakeUpload(build, "later"));
  LoseTree();
  time.Advance(minutes(1));
  time.Run(store::ImportImages(store, data));
  MakeUpload(build, "newest");
  EXPECT_THAT(Sweep(), IsEmpty());
}

TEST_F(LeakCleanupTest, ARecordThatCannotBeReadIsARecord) {  // D-99
  store::UploadKey upload = MakeUpload(MakeBuild(), "image");
  PutImage("image", upload);
  time.Run(client->Set(store::Images::UploadPath(upload), "no JSON"));
  EXPECT_THAT(Sweep(), IsEmpty());
}

// Metadata is text that any user of the cloud may have written.
TEST_F(LeakCleanupTest, MarksThatMakeNoSenseProveNothing) {  // D-99
  store::BuildKey build = MakeBuild();
  MakeUpload(build, "good");
  for (const char* number : {"1", "-000000001", "00000000001", "../0000001", "0000000000/"}) {
    store::UploadKey upload{build, config->name, UploadId(number)};
    PutImage(std::string("image ") + number, upload);
  }
  Put("image", "without a number", {{"nodepool_build_id", build.build.str()}});
  EXPECT_THAT(Sweep(), IsEmpty());
}

// A volume may hold data: it is deleted if this tree once had its node, and stays otherwise. The machine
// itself is deleted in any case.
TEST_F(LeakCleanupTest, VolumesOfALostTreeStay) {  // D-99
  Node record;
  record.SetState(NodeState::kReady, time.loop().Now());
  record.provider = config->name;
  NodeId former = time.Run(store.nodes.Create(record));
  time.Run(zk::DeleteRecursive(*client, "/nodepool/nodes/" + former.str()));
  Put("volume", "of former", {{"nodepool_node_id", former.str()}});
  Put("volume", "of lost", {{"nodepool_node_id", "0000004711"}});
  for (Resource& volume : in_cloud_) volume.outlives_machine = true;
  Put("server", "lost", {{"nodepool_node_id", "0000004711"}});
  EXPECT_THAT(Sweep(), UnorderedElementsAre("of former", "lost"));
  EXPECT_EQ(log_.Count("1 volumes (of lost) of provider cloud have our mark"), 1);
}

TEST_F(LeakCleanupTest, ManyAtOnceAreLeftToTheOperator) {  // D-99
  store::BuildKey build = MakeBuild();
  PutImage("good", MakeUpload(build, "good"));
  PutImage("snapshot", FormerUpload(build), "snapshot");
  for (const char* id : {"a", "b", "c"}) PutImage(id, FormerUpload(build));
  EXPECT_THAT(Sweep(), ElementsAre("snapshot")) << "each kind for itself";
  EXPECT_EQ(log_.Count("3 images (a, b, c) of provider cloud have no record any more, more than 50 %"), 1);
  time.Run(provider->Stop());
  provider.reset();
  config->max_leaked_share = 75;
  EXPECT_THAT(Sweep(), UnorderedElementsAre("snapshot", "a", "b", "c"));
}

// launcher.27.6
TEST_F(LeakCleanupTest, DeletionsAreReportedAlsoWhenASweepIsInterrupted) {
  auto sweep = [this] {
    LeakTally tally(this, config->name);
    tally.Add("servers");
    tally.Add("ports");
    tally.Add("servers");
    throw Error(Verdict::kCancelled, "out of time");
  };
  EXPECT_THROW(sweep(), Error);
  EXPECT_THAT(leaks, ElementsAre("1 ports", "2 servers"));
}

TEST(MaxLeakedTest, OneIsAlwaysAllowedUnlessTheShareIsZero) {
  EXPECT_EQ(MaxLeaked(1, 50), 1u);
  EXPECT_EQ(MaxLeaked(3, 50), 1u);
  EXPECT_EQ(MaxLeaked(4, 50), 2u);
  EXPECT_EQ(MaxLeaked(7, 100), 7u);
  EXPECT_EQ(MaxLeaked(7, 0), 0u);
}

}  // namespace

}  // namespace nodepool::driver::cloud
