#include "base/testing/test_environment.h"
#include "builder/builder_fixture_for_test.h"

namespace nodepool::builder {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

TEST_F(BuilderTest, AnImageIsBuiltUploadedAndBuiltAgainWhenItIsOld) {
  Host& host = Start();
  EXPECT_TRUE(AwaitUploads(1));
  store::StoredBuild first = Builds().at(0);
  EXPECT_EQ(first.record.builder, "nb01.example.org");
  EXPECT_EQ(first.record.builder_id, "id of nb01");
  EXPECT_THAT(first.record.formats, ElementsAre("qcow2"));
  EXPECT_EQ(first.id.build.value.size(), 32u);
  EXPECT_EQ(Uploads().at(0).id.upload.value, "0000000001");
  time_.Advance(23h + 49min);
  EXPECT_EQ(host.runner.ran.size(), 1u);
  EXPECT_TRUE(Await([&] { return host.runner.ran.size() == 2; }, 20min));
  EXPECT_TRUE(AwaitUploads(2));
  EXPECT_GE(Builds(ImageState::kReady).at(1).record.state_time - first.record.state_time, 24h);
  // The third build replaces the first one.
  time_.Advance(25h);
  EXPECT_TRUE(Await([&] { return Builds().size() == 2 && Uploads().size() == 2; }));
  EXPECT_EQ(cloud().images().size(), 2u);
  EXPECT_FALSE(host.files.Has(first.id));
  EXPECT_FALSE(time_.Run(store_->images.BuildExists(first.id)));
}

// B-reload-image-add
TEST_F(BuilderTest, AnImageThatIsAddedIsBuiltAndUploaded) {
  Host& host = Start();
  ASSERT_TRUE(AwaitUploads(1));
  diskimages_ = "[{name: debian}, {name: fedora}]";
  providers_ = Provider("cloud", "{name: debian}, {name: fedora}");
  Load();
  EXPECT_TRUE(Await([&] { return Uploads("fedora").size() == 1; }, 15min));
  EXPECT_THAT(Built(host), ElementsAre("debian", "fedora"));
}

// D-101
TEST_F(BuilderTest, AnImageWhoseNameIsAPathIsNotBuilt) {
  diskimages_ = "[{name: ../evil}, {name: debian}]";
  providers_ = Provider("cloud", "{name: ../evil}, {name: debian}");
  Load();
  log::Capture log;
  Host& host = Start();
  ASSERT_TRUE(AwaitUploads(1));
  EXPECT_THAT(Built(host), ElementsAre("debian"));
  EXPECT_GE(log.Count("Building image ../evil: its name contains '/'; rename it"), 1);
}

// B-username
TEST_F(BuilderTest, TheUsernameIsInBothRecords) {
  diskimages_ = "[{name: debian, username: admin, python-path: /py, shell-type: sh}]";
  Load();
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  auto expect = [](const auto& record) {
    EXPECT_EQ(record.username, "admin");
    EXPECT_EQ(record.python_path, "/py");
    EXPECT_EQ(record.shell_type, "sh");
  };
  expect(Builds().at(0).record);
  expect(Uploads().at(0).record);
}

TEST_F(BuilderTest, WhileItBuildsTheRecordSaysSoAndTheLockIsHeld) {
  Host& host = Start();
  EXPECT_TRUE(Await([&] { return !host.builder->building().empty(); }));
  time_.Advance(1min);
  store::StoredBuild build = Builds().at(0);
  EXPECT_EQ(build.record.state, ImageState::kBuilding);
  EXPECT_EQ(build.record.username, std::nullopt);
  EXPECT_THAT(build.record.formats, ElementsAre("qcow2"));
  EXPECT_FALSE(time_.Run(store_->images.TryLock(ImageName("debian"))));
  time_.Advance(30min);
  EXPECT_EQ(Builds().at(0).record.state, ImageState::kReady);
  EXPECT_EQ(Builds().at(0).record.username, "zuul");
  std::optional<zk::HeldLock> lock = time_.Run(store_->images.TryLock(ImageName("debian")));
  ASSERT_TRUE(lock);
  time_.Run(store_->tree.Unlock(*lock));
}

// B-failed-build
TEST_F(BuilderTest, TheRecordOfAFailedBuildSaysWhyUntilTheNextOneHasEnded) {
  Host& host = Start();
  host.runner.build_time = 1s;
  host.runner.next_code = [] { return 3; };
  host.runner.printed = "building\nE: no such package\ncleaning up\n";
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kFailed).empty(); }));
  BuildKey first = Builds(ImageState::kFailed).at(0).id;
  EXPECT_EQ(Builds().at(0).record.error, "disk-image-create ended with 3: E: no such package");
  host.files.names.insert(first.str() + ".qcow2");
  time_.Run(store_->images.Pause(ImageName("debian")));
  time_.Advance(24h);
  ASSERT_EQ(Builds().size(), 1u) << "nobody builds it, and operators still see why";
  EXPECT_EQ(Builds().at(0).id, first);
  EXPECT_FALSE(host.files.Has(first)) << "its files are useless";
  // A Python builder removes it at once.
  time_.Run(store_->images.RemoveBuild(first));
  time_.Advance(2min);
  EXPECT_TRUE(Builds().empty());
  time_.Run(store_->images.Unpause(ImageName("debian")));
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kFailed).empty(); }));
  host.runner.next_code = [] { return 0; };
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kReady).empty(); }));
  EXPECT_TRUE(Await([&] { return Builds().size() == 1; }, 3min));
  EXPECT_EQ(Builds().at(0).record.error, std::nullopt);
}

// D-40, B-manual-fail
TEST_F(BuilderTest, FailingBuildsAreTriedWithGrowingPauses) {
  Host& host = Start();
  host.runner.build_time = 1s;
  host.runner.next_code = [] { return 1; };
  time_.Advance(2h);
  // At 0, 1, 3, 7, 15, 31, 63 minutes, then each hour.
  EXPECT_EQ(host.runner.ran.size(), 7u);
  time_.Advance(24h);
  EXPECT_LE(host.runner.ran.size(), 7u + 25);
  EXPECT_GE(host.runner.ran.size(), 7u + 22);
  EXPECT_LE(Builds().size(), 1u) << "failed records are removed";
  // A request is served at once, but the same request not twice.
  std::size_t before = host.runner.ran.size();
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  time_.Advance(10s);
  EXPECT_EQ(host.runner.ran.size(), before + 1);
  time_.Advance(30s);
  EXPECT_EQ(host.runner.ran.size(), before + 1);
  EXPECT_TRUE(Exists("/nodepool/images/debian/request-build")) << "it stays until a build is good";
  // A changed configuration is tried at once.
  diskimages_ = "[{name: debian, elements: [vm]}]";
  host.runner.next_code = [] { return 0; };
  Load();
  EXPECT_TRUE(AwaitUploads(1, 1min));
  EXPECT_FALSE(Exists("/nodepool/images/debian/request-build"));
}

// A request is served by a build that began after it was made (builder.md 6.2).
TEST_F(BuilderTest, ARequestDuringABuildIsServedByAnother) {
  Host& host = Start();
  time_.Advance(1min);
  ASSERT_EQ(host.runner.running, 1) << "the image was missing";
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  EXPECT_TRUE(AwaitUploads(2));
  EXPECT_EQ(host.runner.ran.size(), 2u);
  EXPECT_FALSE(Exists("/nodepool/images/debian/request-build"));
  time_.Advance(1h);
  EXPECT_EQ(host.runner.ran.size(), 2u);
}

TEST_F(BuilderTest, ARequestThatWasThereIsServedByTheBuildThatWasDueAnyway) {
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  Host& host = Start();
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_FALSE(Exists("/nodepool/images/debian/request-build"));
  time_.Advance(1h);
  EXPECT_EQ(host.runner.ran.size(), 1u);
}

// A client may remove a request and make it again, or write it, during the build that serves it.
TEST_F(BuilderTest, ARequestMadeAgainDuringItsBuildIsServedByAnother) {
  std::string path = "/nodepool/images/debian/request-build";
  Host& host = Start();
  ASSERT_TRUE(AwaitUploads(1));
  std::vector<std::function<void()>> ways = {[&] {
                                               zk_.tree().Delete({path, -1}, 0);
                                               time_.Run(store_->images.RequestBuild(ImageName("debian")));
                                             },
                                             [&] {
                                               zk_.tree().Set({path, "again", -1}, 0, time_.clock().Now());
                                             }};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::size_t before = host.runner.ran.size();
    time_.Run(store_->images.RequestBuild(ImageName("debian")));
    ASSERT_TRUE(Await([&] { return host.runner.ran.size() == before + 1; }));
    ways[i]();
    EXPECT_TRUE(Await([&] { return !Exists(path); })) << i;
    EXPECT_EQ(host.runner.ran.size(), before + 2) << i;
  }
}

TEST_F(BuilderTest, ARequestIsServedOnceThoughTwoBuildersSeeIt) {
  Host& one = Start("nb01");
  Host& two = Start("nb02");
  ASSERT_TRUE(AwaitUploads(1));
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  EXPECT_TRUE(Await([&] { return Builds(ImageState::kReady).size() == 2; }));
  time_.Advance(1h);
  EXPECT_EQ(one.runner.ran.size() + two.runner.ran.size(), 2u);
  EXPECT_FALSE(Exists("/nodepool/images/debian/request-build"));
}

TEST_F(BuilderTest, BuildsAtATimeAreLimited) {
  workers_.builds = 2;
  diskimages_ = "[{name: a}, {name: b}, {name: c}, {name: d}]";
  providers_ = Provider("cloud", "{name: a}, {name: b}, {name: c}, {name: d}");
  Load();
  Host& host = Start();
  EXPECT_TRUE(Await([&] { return cloud().images().size() == 4; }));
  EXPECT_EQ(host.runner.most_running, 2);
}

// builder.md 3.4
TEST_F(BuilderTest, ImagesAreBuiltInTheOrderOfTheConfiguration) {
  diskimages_ = "[{name: c}, {name: a, abstract: true}, {name: d}, {name: b, parent: a}]";
  providers_ = Provider("cloud", "{name: b}, {name: c}, {name: d}");
  Load();
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return cloud().images().size() == 3; }));
  EXPECT_THAT(Built(host), ElementsAre("c", "d", "b"));
}

TEST_F(BuilderTest, TheNumberOfBuildsAtATimeChangesWhileItRuns) {
  diskimages_ = "[{name: a}, {name: b}, {name: c}, {name: d}]";
  providers_ = Provider("cloud", "{name: a}, {name: b}, {name: c}, {name: d}");
  settings_ = "build-workers: 0\n";
  Load();
  Host& host = Start();
  time_.Advance(1h);
  EXPECT_TRUE(host.runner.ran.empty());
  settings_ = "build-workers: 3\n";
  Load();
  time_.Advance(1s);
  EXPECT_EQ(host.runner.running, 3);
  settings_ = "";
  Load();
  EXPECT_TRUE(Await([&] { return cloud().images().size() == 4; }));
  EXPECT_EQ(host.runner.most_running, 3);
}

TEST_F(BuilderTest, WithoutWorkersNothingIsBuilt) {
  workers_.builds = 0;
  Host& host = Start();
  time_.Advance(1h);
  EXPECT_TRUE(host.runner.ran.empty());
}

// B-no-format, B-build-pause
TEST_F(BuilderTest, ImagesThatArePausedOrWithoutFormatsAreNotBuilt) {
  diskimages_ = "[{name: debian, pause: true}, {name: fedora}, {name: other}]";
  providers_ = Provider("cloud", "{name: debian}, {name: other}");
  Load();
  Host& host = Start();
  for (const char* image : {"debian", "fedora"}) time_.Run(store_->images.RequestBuild(ImageName(image)));
  time_.Advance(1h);
  EXPECT_THAT(Built(host), ElementsAre("other"));
  EXPECT_TRUE(Exists("/nodepool/images/fedora/request-build"));
}

// coordination.17.31, B-cli-pause
TEST_F(BuilderTest, ImagesPausedInZooKeeperAreNotBuilt) {
  diskimages_ = "[{name: debian, rebuild-age: 3600}, {name: other}]";
  providers_ = Provider("cloud", "{name: debian}, {name: other}");
  Load();
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return cloud().images().size() == 2; }));
  ASSERT_THAT(Built(host), ElementsAre("debian", "other"));
  time_.Run(store_->images.Pause(ImageName("debian")));
  time_.Advance(3h);
  EXPECT_EQ(host.runner.ran.size(), 2u) << "it is old by now";
  for (const char* image : {"debian", "other"}) time_.Run(store_->images.RequestBuild(ImageName(image)));
  time_.Advance(1h);
  EXPECT_THAT(Built(host), ElementsAre("debian", "other", "other"));
  EXPECT_TRUE(Exists("/nodepool/images/debian/request-build"));
  time_.Run(store_->images.Unpause(ImageName("debian")));
  EXPECT_TRUE(Await([&] { return !Exists("/nodepool/images/debian/request-build"); }, 15min));
  EXPECT_THAT(Built(host), ElementsAre("debian", "other", "other", "debian"));
}

// B-pause-while-building: the configuration is read before each image.
TEST_F(BuilderTest, ImagesPausedMeanwhileAreNotBuilt) {
  diskimages_ = "[{name: a}, {name: b}]";
  providers_ = Provider("cloud", "{name: a}, {name: b}");
  Load();
  Host& host = Start();
  time_.Advance(1min);
  diskimages_ = "[{name: a}, {name: b, pause: true}]";
  Load();
  time_.Advance(1h);
  EXPECT_THAT(Built(host), ElementsAre("a"));
}

TEST_F(BuilderTest, ABuildWhoseImageIsEmptyFails) {
  log::Capture log;
  Host& host = Start();
  host.files.empty = {"qcow2"};
  time_.Advance(30min);
  EXPECT_GE(log.Count("its qcow2 file is empty"), 1);
  EXPECT_TRUE(std::ranges::none_of(
      Builds(), [](const store::StoredBuild& build) { return build.record.state == ImageState::kReady; }));
  host.files.empty.clear();
  EXPECT_TRUE(AwaitUploads(1, 2h));
}

// B-timeout
TEST_F(BuilderTest, ABuildThatTakesTooLongFails) {
  diskimages_ = "[{name: debian, build-timeout: 90}]";
  Load();
  Host& host = Start();
  EXPECT_TRUE(Await([&] { return !Builds(ImageState::kFailed).empty(); }, 2min));
  EXPECT_EQ(host.runner.running, 0);
  EXPECT_EQ(host.files.logs.begin()->second, "") << "no exit code is known";
}

TEST_F(BuilderTest, TheLossOfTheSessionEndsTheBuildAndAnotherFollows) {
  Host& host = Start();
  time_.Advance(1min);
  BuildKey lost = Builds().at(0).id;
  zk_.ExpireSession(*host.client);
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(host.runner.ended_count, 1);
  EXPECT_FALSE(time_.Run(store_->images.BuildExists(lost)));
  EXPECT_FALSE(host.files.Has(lost));
}

TEST_F(BuilderTest, AnInterruptedConnectionDoesNotMatter) {
  Host& host = Start();
  time_.Advance(1min);
  zk_.Disconnect(*host.client);
  time_.Advance(5s);
  zk_.Reconnect(*host.client);
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(host.runner.ran.size(), 1u);
}

// B-session-loss: its end cannot be recorded, so it is removed at once.
TEST_F(BuilderTest, ABuildWhoseRecordVanishedLeavesNoFiles) {
  log::Capture log;
  Host& host = Start();
  time_.Advance(1min);
  store::StoredBuild build = Builds().at(0);
  time_.Run(store_->images.RemoveBuild(build.id));
  time_.Advance(10min);
  EXPECT_EQ(log.Count("is thrown away, its end cannot be recorded"), 1);
  EXPECT_FALSE(host.files.Has(build.id));
  EXPECT_TRUE(AwaitUploads(1));
}

// Every write of a build's life fails once, before or after its effect.
TEST_F(BuilderTest, FaultsOfTheConnectionAtAnyWrite) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    for (std::size_t n = 0; n < 60; n += testing::Often(1, 4)) {
      diskimages_ =
          "[{name: image" + std::to_string(n) + (fault == testing::FaultyZk::Fault::kAfter ? "b}]" : "a}]");
      std::string name = diskimages_.substr(8, diskimages_.size() - 10);
      providers_ = Provider("cloud", "{name: " + name + "}");
      Load();
      Host& host = Start("nb" + std::to_string(hosts_.size()));
      host.recorder->FailNth(n, fault);
      EXPECT_TRUE(Await([&] {
        auto uploads = Uploads(name);
        return uploads.size() == 1 && uploads[0].record.state == ImageState::kReady;
      })) << name;
      EXPECT_EQ(Builds(name).size(), 1u) << name;
      Stop(host);
    }
  }
}

// D-45
TEST_F(BuilderTest, ABuildWithoutFilesIsMadeAgainWhenAProviderLacksIt) {
  Host& host = Start();
  EXPECT_TRUE(AwaitUploads(1));
  host.files.names.clear();
  time_.Advance(2h);
  EXPECT_EQ(host.runner.ran.size(), 1u) << "no provider lacks a file";
  providers_ += Provider("other", "{name: debian}");
  Load();
  EXPECT_TRUE(Await([&] { return Uploads(ImageState::kReady, "other").size() == 1; }));
  EXPECT_EQ(host.runner.ran.size(), 2u);
}

// Files are read before a build is recorded as ready; nothing that fails after that makes its image wait as
// if the build had failed.
TEST_F(BuilderTest, ABuildWhoseFileVanishesBeforeItIsRecordedHasFailed) {
  Host& host = Start();
  host.files.vanish_when_measured = true;
  ASSERT_TRUE(Await([&] { return Builds(ImageState::kFailed).size() == 1; }));
  EXPECT_EQ(Builds()[0].record.error, "debian.qcow2: No such file or directory");
  EXPECT_TRUE(AwaitUploads(1, host.runner.build_time + 2min)) << "it is built again";
}

// Only a sweep of the directory notices that a file is gone.
TEST_F(BuilderTest, ALostFileIsNoticedWithoutAnyOtherEvent) {
  providers_ = Provider("cloud", "{name: debian, pause: true}");
  Load();
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kReady).empty(); }));
  host.files.names.clear();
  providers_ = Provider("cloud", "{name: debian}");
  Load();
  EXPECT_TRUE(AwaitUploads(1, 15min));
}

TEST_F(BuilderTest, AnImagesDirThatFailsOnlyDelays) {
  Host& host = Start();
  EXPECT_TRUE(AwaitUploads(1));
  host.files.is_broken = true;
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  time_.Advance(3h);
  EXPECT_EQ(host.runner.ran.size(), 1u);
  host.files.is_broken = false;
  EXPECT_TRUE(AwaitUploads(2));
}

// A record in `building` whose lock is held belongs to a running build.
TEST_F(BuilderTest, TwoBuildersBuildOnce) {
  Host& one = Start("nb01");
  Host& two = Start("nb02");
  EXPECT_TRUE(AwaitUploads(1));
  time_.Advance(1h);
  EXPECT_EQ(one.runner.ran.size() + two.runner.ran.size(), 1u);
  EXPECT_EQ(Uploads().size(), 1u);
}

TEST_F(BuilderTest, TheOtherBuilderTakesOverFromADeadOne) {
  Host& one = Start("nb01");
  time_.Advance(1min);
  ASSERT_EQ(one.runner.running, 1);
  Host& two = Start("nb02");
  BuildKey abandoned = Builds().at(0).id;
  Kill(one);
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(two.runner.ran.size(), 1u);
  EXPECT_FALSE(time_.Run(store_->images.BuildExists(abandoned)));
}

}  // namespace
}  // namespace nodepool::builder
