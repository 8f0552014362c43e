#include "builder/builder_fixture_for_test.h"

namespace nodepool::builder {
namespace {

using namespace std::chrono_literals;

class CleanupTest : public BuilderTest {
 protected:
  // A record without content, as left by a client that locked a removed znode.
  void PutEmpty(const std::string& path) {
    for (const std::string& place : {path, path + "/lock"}) {
      ASSERT_TRUE(zk_.tree().Create({place, ""}, 0, time_.clock().Now())) << place;
    }
  }
  // Ends when the new build is uploaded.
  void BuildAgain() {
    time_.Run(store_->images.RequestBuild(ImageName("debian")));
    ASSERT_TRUE(Await([&] { return !Exists("/nodepool/images/debian/request-build"); }));
    BuildKey build = Builds(ImageState::kReady).back().id;
    ASSERT_TRUE(Await([&] {
      return std::ranges::any_of(Uploads(ImageState::kReady),
                                 [&](const auto& upload) { return upload.id.build == build; });
    }));
  }
};

// B-two-builders-gap
TEST_F(CleanupTest, ABuildStaysThoughNoProviderHereUsesTheImage) {
  diskimages_ = "[{name: debian}, {name: fedora}]";
  Load();
  Host& one = Start("nb01");
  ASSERT_TRUE(AwaitUploads(1));
  BuildKey build = Builds().at(0).id;
  Stop(one);
  time_.Run(store_->images.RemoveUpload(Uploads().at(0).id));
  providers_ = Provider("other", "{name: fedora}");
  Load();
  Host& two = Start("nb02");
  ASSERT_TRUE(Await([&] { return Uploads("fedora", "other").size() == 1; }));
  time_.Advance(1h);
  EXPECT_EQ(time_.Run(store_->images.ReadBuild(build))->record.state, ImageState::kReady);
  EXPECT_TRUE(one.files.Has(build));
  EXPECT_EQ(two.runner.ran.size(), 1u);
}

// B-dib-deletes-first
TEST_F(CleanupTest, FilesAreRemovedThoughTheCloudDoesNotDelete) {
  diskimages_ = "[{name: debian}, {name: fedora}]";
  providers_ = Provider("cloud", "{name: debian}, {name: fedora}");
  Load();
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return cloud().images().size() == 2; }));
  BuildKey build = Builds().at(0).id;
  cloud().FailNextImageDeletes(1000);
  diskimages_ = "[{name: fedora}]";
  providers_ = Provider("cloud", "{name: fedora}");
  Load();
  EXPECT_TRUE(Await([&] { return !host.files.Has(build); }));
  time_.Advance(10min);
  EXPECT_EQ(Builds().at(0).record.state, ImageState::kDeleting);
  EXPECT_EQ(Uploads().at(0).record.state, ImageState::kDeleting);
  EXPECT_EQ(cloud().images().size(), 2u);
  cloud().FailNextImageDeletes(0);
  EXPECT_TRUE(Await([&] { return cloud().images().size() == 1 && !Exists("/nodepool/images/debian"); }));
}

// B-rotation, B-rotation-no-id
TEST_F(CleanupTest, AnUploadWithoutAnIdIsRemovedWithoutACall) {
  Host& host = Start();
  ASSERT_TRUE(AwaitUploads(1));
  store::StoredUpload oldest = Uploads().at(0);
  std::string id = *oldest.record.external_id;
  auto drop_id = [](ImageUpload& record) {
    record.external_id = record.external_name = std::nullopt;
    return store::Change::kWrite;
  };
  time_.Run(store_->images.UpdateUnlocked(oldest, drop_id));
  BuildAgain();
  BuildAgain();
  EXPECT_TRUE(Await([&] { return Builds().size() == 2 && Uploads().size() == 2; }));
  EXPECT_FALSE(host.files.Has(oldest.id.build));
  EXPECT_EQ(cloud().images().size(), 3u);
  EXPECT_TRUE(cloud().images().contains(id));
}

// B-stale-building
TEST_F(CleanupTest, AnAbandonedBuildIsRemovedOnceTheImageIsNotBeingBuilt) {
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  zk::HeldLock lock = *time_.Run(store_->images.TryLock(ImageName("debian")));
  ImageBuild record;
  record.state = ImageState::kBuilding;
  BuildKey stale = time_.Run(store_->images.CreateBuild(ImageName("debian"), record, lock)).id;
  time_.Advance(1h);
  EXPECT_TRUE(time_.Run(store_->images.BuildExists(stale))) << "the lock's holder may be working on it";
  time_.Run(store_->tree.Unlock(lock));
  EXPECT_TRUE(Await([&] { return !time_.Run(store_->images.BuildExists(stale)); }, 2min));
  EXPECT_EQ(Builds(ImageState::kReady).size(), 1u);
}

// B-obsolete
TEST_F(CleanupTest, BuildsStayWhenTheProviderStopsListingTheImage) {
  diskimages_ = "[{name: debian, formats: [qcow2]}]";
  Load();
  Host& host = Start();
  ASSERT_TRUE(AwaitUploads(1));
  BuildAgain();
  providers_ = Provider("cloud", "");
  Load();
  EXPECT_TRUE(Await([&] { return Uploads().empty() && cloud().images().empty(); }));
  time_.Advance(3h);
  EXPECT_EQ(Builds(ImageState::kReady).size(), 2u);
  for (const store::StoredBuild& build : Builds()) EXPECT_TRUE(host.files.Has(build.id));
}

// B-empty-nodes
TEST_F(CleanupTest, RecordsWithoutContentBlockNothingAndAreRemoved) {
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  std::string builds = "/nodepool/images/debian/builds/";
  std::string first = builds + Builds().at(0).id.build.value;
  std::string empty = builds + std::string(32, 'f');
  PutEmpty(empty);
  PutEmpty(first + "/providers/cloud/images/0000000009");
  BuildAgain();
  EXPECT_TRUE(Await([&] { return !Exists(empty); }, 10min));
  BuildAgain();
  EXPECT_TRUE(Await([&] { return !Exists(first) && Uploads().size() == 2; }));
}

}  // namespace
}  // namespace nodepool::builder
