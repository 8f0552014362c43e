#include "base/testing/test_environment.h"
#include "builder/builder_fixture_for_test.h"

namespace nodepool::builder {

namespace {

using namespace std::chrono_literals;

TEST_F(BuilderTest, AnUploadThatFailsIsTriedAgainAndDelaysNoOther) {  // B-upload-fail-continue, D-40
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian}");
  Load();
  Start();
  EXPECT_TRUE(Await([&] { return !Builds().empty(); }));
  cloud().FailNextUploads(3);
  EXPECT_TRUE(Await([&] { return Uploads(ImageState::kReady, "other").size() == 1; }));
  EXPECT_EQ(Uploads(ImageState::kReady).size(), 0u);
  SteadyTime start = time_.loop().SteadyNow();
  EXPECT_TRUE(AwaitUploads(1));
  Duration took = time_.loop().SteadyNow() - start;
  EXPECT_GE(took, 7min - 10s) << "1, 2 and 4 minutes";
  EXPECT_LE(took, 8min);
  EXPECT_TRUE(Await([&] { return Uploads().size() == 1; })) << "failed records are removed";
}

// ACT-8
TEST_F(BuilderTest, AnOperatorEndsThePauseAfterAFailure) {
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian}");
  Load();
  Start();
  EXPECT_TRUE(Await([&] { return !Builds(ImageState::kReady).empty(); }));
  cloud().FailNextUploads(5);
  cloud("other").FailNextUploads(5);
  time_.Advance(20min);
  EXPECT_THAT(Uploads(ImageState::kReady), ::testing::IsEmpty());
  BuildKey build = Builds(ImageState::kReady).at(0).id;
  time_.Run(store_->images.RetryUpload(build, ProviderName("cloud")));
  EXPECT_TRUE(Await([&] { return Uploads(ImageState::kReady).size() == 1; }, 10s)) << "at once";
  EXPECT_THAT(Uploads(ImageState::kReady, "other"), ::testing::IsEmpty()) << "it was not asked for";
}

TEST_F(BuilderTest, AFailedUploadSaysWhyAndNothingElse) {
  Start();
  EXPECT_TRUE(Await([&] { return !Builds().empty(); }));
  cloud().FailNextUploads(1);
  cloud().PauseUploads();
  EXPECT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  time_.Advance(20s);  // not at the time of the clean-up's sweep
  cloud().ResumeUploads();
  EXPECT_TRUE(Await([&] { return !Uploads(ImageState::kFailed).empty(); }, 30min));
  ImageUpload record = Uploads(ImageState::kFailed).at(0).record;
  EXPECT_EQ(record.external_id, std::nullopt);
  EXPECT_EQ(record.external_name, std::nullopt);
  EXPECT_EQ(record.username, std::nullopt);
  EXPECT_THAT(record.error.value_or(""), ::testing::HasSubstr("the simulated cloud failed to take image"));
  time_.Advance(30min);
  EXPECT_TRUE(Uploads(ImageState::kFailed).empty()) << "a newer one has ended";
}

TEST_F(BuilderTest, TheRecordSaysHowFarAnUploadHasCome) {
  Start();
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 200s; });
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  auto progress = [&] { return Uploads().at(0).record.progress; };
  EXPECT_TRUE(Await([&] { return progress() == "sending the file, 50 %"; }, 5min));
  EXPECT_NE(Uploads().at(0).record.external_id, std::nullopt) << "what was announced stays";
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(progress(), std::nullopt);
}

TEST_F(BuilderTest, ProgressIsWrittenAtMostEveryTenSecondsAndOnlyIfThereIsSome) {
  Host& host = Start();
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 2s; });
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  cloud().PauseUploads();
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  time_.Advance(1min);
  EXPECT_EQ(Uploads().at(0).record.progress, "sending the file, 100 %");
  std::int32_t version = Uploads().at(0).revision.version;
  EXPECT_LE(version, 4) << "two for the id, two of ten steps in two seconds";
  std::size_t calls = host.recorder->calls().size();
  time_.Advance(30s);
  EXPECT_EQ(Uploads().at(0).revision.version, version);
  EXPECT_LE(host.recorder->calls().size() - calls, 10u);
  cloud().ResumeUploads();
  EXPECT_TRUE(AwaitUploads(1));
}

TEST_F(BuilderTest, UploadsAreLimitedInNumber) {
  workers_.uploads = 1;
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian}");
  Load();
  Start();
  for (const char* name : {"cloud", "other"})
    ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 40min; }, name);
  EXPECT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  time_.Advance(10min);
  EXPECT_TRUE(Uploads("debian", "other").empty());
  EXPECT_TRUE(Await([&] { return Uploads(ImageState::kReady, "other").size() == 1; }, 4h));
}

// The pause in ZooKeeper does not stop uploads, the provider's does; D-42, B-zk-pause-upload, B-upload-pause
TEST_F(BuilderTest, WhichPauseCounts) {
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian, pause: true}");
  Load();
  Start();
  EXPECT_TRUE(Await([&] { return !Builds().empty(); }));
  time_.Run(store_->images.Pause(ImageName("debian")));
  EXPECT_TRUE(AwaitUploads(1));
  time_.Advance(1h);
  EXPECT_TRUE(Uploads("debian", "other").empty());
}

TEST_F(BuilderTest, AnUploadWithoutItsRecordIsDeletedFromTheCloud) {
  Start();
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  cloud().PauseUploads();
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  time_.Run(store_->images.RemoveUpload(Uploads().at(0).id));
  cloud().ResumeUploads();
  EXPECT_TRUE(AwaitUploads(1));
  time_.Advance(10min);
  EXPECT_EQ(cloud().images().size(), 1u);
}

TEST_F(BuilderTest, TheLossOfTheSessionEndsTheUploadAndAnotherFollows) {
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  cloud().PauseUploads();
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  zk_.ExpireSession(*host.client);
  time_.Advance(2min);
  cloud().ResumeUploads();
  EXPECT_TRUE(AwaitUploads(1));
  time_.Advance(10min);
  EXPECT_EQ(cloud().images().size(), 1u);
  EXPECT_EQ(Uploads().size(), 1u);
}

// The builder waits for the lock's holder without polling.
TEST_F(BuilderTest, AnUploadLockedByAnotherBuilderWaits) {
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  zk::HeldLock lock = *time_.Run(store_->images.TryLockUploads(Builds()[0].id, ProviderName("cloud")));
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kReady).empty(); }));
  std::size_t before = host.recorder->calls().size();
  time_.Advance(1h);
  EXPECT_TRUE(Uploads().empty());
  EXPECT_LT(host.recorder->calls().size() - before, 100u);
  time_.Run(store_->tree.Unlock(lock));
  EXPECT_TRUE(AwaitUploads(1, 1min));
}

TEST_F(BuilderTest, AnAbandonedUploadIsRemovedAndMadeAgain) {  // B-hard-fail-upload
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  BuildKey build = Builds().at(0).id;
  ImageUpload stale;
  stale.state = ImageState::kUploading;
  zk::HeldLock lock = *time_.Run(store_->images.TryLockUploads(build, ProviderName("cloud")));
  store::UploadKey key = time_.Run(store_->images.CreateUpload(build, ProviderName("cloud"), stale, lock)).id;
  time_.Advance(5min);
  EXPECT_TRUE(time_.Run(store_->images.ReadUpload(key))) << "the lock's holder may be working on it";
  time_.Run(store_->tree.Unlock(lock));
  time_.Advance(2min);
  EXPECT_FALSE(time_.Run(store_->images.ReadUpload(key)));
  EXPECT_EQ(cloud().images().size(), 1u);
}

// B-hook-fail
TEST_F(BuilderTest, WhatTheHookRefusesIsDeletedFromTheCloud) {
  providers_ = Provider("cloud", "{name: debian}", "post-upload-hook: /hook");
  Load();
  Host& host = Start();
  host.runner.build_time = 610s;  // so that the clean-up does not sweep just then
  host.runner.next_code = [&] { return host.runner.ran.back().front() == "/hook" ? 1 : 0; };
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kFailed).empty(); }));
  EXPECT_EQ(Uploads().at(0).record.external_id, std::nullopt);
  EXPECT_TRUE(cloud().images().empty());
  EXPECT_EQ(host.runner.ran.at(1).at(1), "cloud");
  host.runner.next_code = [] { return 0; };
  EXPECT_TRUE(AwaitUploads(1));
}

TEST_F(BuilderTest, AnIncompleteImageIsDeletedWithTheRecordOfItsDeadBuilder) {
  Host& dead = Start("nb1");
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  cloud().PauseUploads();
  auto is_noted = [&] { return !Uploads().empty() && Uploads().at(0).record.external_id; };
  ASSERT_TRUE(Await(is_noted));
  std::string half = *Uploads().at(0).record.external_id;
  cloud().FailNextImageDeletes(1);  // a dead builder removes nothing
  Kill(dead);
  ASSERT_TRUE(cloud().images().contains(half));
  Restart(dead);
  EXPECT_TRUE(Await([&] { return !cloud().images().contains(half); }));
  cloud().ResumeUploads();
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(cloud().images().size(), 1u);
}

TEST_F(BuilderTest, DeletionsInTheCloudAreRepeated) {  // B-delete-retry
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  cloud().FailNextImageDeletes(3);
  store::StoredUpload upload = Uploads().at(0);
  auto mark = [](ImageUpload& record) {
    record.state = ImageState::kFailed;
    return store::Change::kWrite;
  };
  time_.Run(store_->images.UpdateUnlocked(upload, mark));
  time_.Advance(150s);
  EXPECT_TRUE(time_.Run(store_->images.ReadUpload(upload.id)));
  time_.Advance(2min);
  EXPECT_FALSE(time_.Run(store_->images.ReadUpload(upload.id)));
  EXPECT_TRUE(AwaitUploads(1)) << "the provider gets it again";
  EXPECT_EQ(cloud().images().size(), 1u);
}

TEST_F(BuilderTest, TheOldUploadStaysWhileTheNewOneFails) {  // B-not-recent
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  store::UploadKey old = Uploads().at(0).id;
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_failure_rate = 1; });
  time_.Advance(testing::Often(100, 52) * 1h);
  EXPECT_TRUE(time_.Run(store_->images.ReadUpload(old)));
  EXPECT_EQ(cloud().images().size(), 1u);
  EXPECT_EQ(Builds(ImageState::kReady).size(), 3u) << "two, and the one that is in use";
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_failure_rate = 0; });
  EXPECT_TRUE(AwaitUploads(2, 26h));
}

TEST_F(BuilderTest, AProvidersUploadsAreDeletedWhenItDoesNotListTheImage) {  // B-reload-provider-remove
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian}");
  Load();
  Start();
  ASSERT_TRUE(Await([&] { return Uploads(ImageState::kReady, "other").size() == 1; }));
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "");
  Load();
  EXPECT_TRUE(Await([&] { return Uploads("debian", "other").empty() && cloud("other").images().empty(); }));
  EXPECT_EQ(Uploads(ImageState::kReady).size(), 1u);
  // Uploads of a provider that is not configured at all stay: it may be another builder's.
  providers_ = Provider("other", "{name: debian}");
  Load();
  time_.Advance(1h);
  EXPECT_EQ(Uploads(ImageState::kReady).size(), 1u);
}

TEST(ImageNameInCloud, FillsInTheNames) {
  auto name = [](const std::string& format) {
    return ImageNameInCloud(format, ImageName("debian"), UploadId("0000000003"), FromSeconds(1717171717.9));
  };
  EXPECT_EQ(name("{image_name}-{timestamp}"), "debian-1717171717");
  EXPECT_EQ(name("np{upload_id}{{x}}"), "np0000000003{x}");
  EXPECT_EQ(name("plain"), "plain");
  for (const char* format : {"{unknown}", "{image_name", "{}"}) EXPECT_THROW(name(format), Error) << format;
}

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
