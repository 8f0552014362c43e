#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/images/image_build.h"
#include "sched/images/image_cleanup.h"
#include "sched/images/image_upload.h"

namespace nodepool::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

const ProviderName kCloud("cloud");
const ProviderName kOther("other");
const WallTime kNow = FromSeconds(1'700'000'000);

class ImageLifeTest : public ::testing::Test {
 protected:
  ImageLifeTest() {
    image.name = ImageName("debian");
    spec.formats = {"qcow2"};
    spec.providers[kCloud] = {.format = "qcow2"};
  }
  BuildView& AddBuild(std::string id, ImageState state = ImageState::kReady, Duration age = 1h) {
    BuildView& build = image.builds.emplace_back();
    build.id = BuildId(std::move(id));
    build.state = state;
    build.state_time = kNow - age;
    build.formats = {"qcow2"};
    build.is_own = true;
    build.local_formats = {"qcow2"};
    return build;
  }
  static UploadView& AddUpload(BuildView& build, std::string id, ImageState state = ImageState::kReady,
                               ProviderName provider = kCloud) {
    return build.uploads.emplace_back(
        UploadView{std::move(provider), UploadId(std::move(id)), state, build.state_time});
  }
  BuildDecision Decide() { return DecideBuild(image, spec, kNow); }
  CleanupPlan Plan() { return PlanCleanup(image, &spec, {kCloud, kOther}); }
  std::vector<std::string> PlannedUploads() {
    std::vector<std::string> names;
    for (const UploadRemoval& removal : Plan().uploads) {
      names.push_back(removal.build.value + "/" + removal.provider.value + "/" + removal.upload.value);
    }
    return names;
  }

  ImageView image;
  ImageSpec spec;
};

TEST_F(ImageLifeTest, WhyAnImageIsBuilt) {
  EXPECT_EQ(Decide().reason, BuildReason::kMissing);
  AddBuild("f", ImageState::kFailed);
  EXPECT_EQ(Decide().reason, BuildReason::kMissing);
  AddBuild("a");
  EXPECT_EQ(Decide().reason, std::nullopt);
  EXPECT_EQ(Decide().why_not, NoBuildReason::kFresh);
  image.is_requested = true;
  EXPECT_EQ(Decide().reason, BuildReason::kRequested);
  image.is_requested = false;
  spec.formats = {"qcow2", "raw"};
  EXPECT_EQ(Decide().reason, BuildReason::kFormat);
}

TEST_F(ImageLifeTest, WhyNot) {
  spec.is_paused = true;
  image.is_requested = true;
  EXPECT_EQ(Decide().why_not, NoBuildReason::kPaused);
  spec.is_paused = false;
  image.is_paused = true;
  EXPECT_EQ(Decide().why_not, NoBuildReason::kPaused);
  image.is_paused = false;
  spec.formats.clear();
  EXPECT_EQ(Decide().why_not, NoBuildReason::kNoFormat);
  spec.formats = {"raw"};
  image.is_build_locked = true;
  EXPECT_EQ(Decide().why_not, NoBuildReason::kBusy);
  EXPECT_EQ(Decide().reason, std::nullopt);
}

// The age is in whole seconds; the moment at which the limit is reached is known in advance.
TEST_F(ImageLifeTest, AnImageIsDueAtThePredictedMoment) {
  BuildView& build = AddBuild("a");
  for (Duration fraction : {0ms, 1ms, 999ms}) {
    build.state_time = kNow - 1h - fraction;
    std::optional<WallTime> due = Decide().due_at;
    ASSERT_TRUE(due);
    EXPECT_EQ(DecideBuild(image, spec, *due).reason, BuildReason::kAged);
    EXPECT_EQ(DecideBuild(image, spec, *due - 1ms).reason, std::nullopt);
  }
}

// D-45
TEST_F(ImageLifeTest, LostFilesMatterWhereAProviderLacksTheImage) {
  BuildView& build = AddBuild("a");
  build.local_formats.clear();
  EXPECT_EQ(Decide().reason, BuildReason::kFilesLost);
  build.is_own = false;
  EXPECT_EQ(Decide().reason, std::nullopt) << "another builder may have them";
  build.is_own = true;
  spec.providers[kCloud].is_paused = true;
  EXPECT_EQ(Decide().reason, std::nullopt);
  spec.providers[kCloud].is_paused = false;
  AddUpload(build, "1");
  EXPECT_EQ(Decide().reason, std::nullopt);
}

TEST_F(ImageLifeTest, WhatEndsAfterTheClockWasSetBackEndedLast) {
  AddUpload(AddBuild("a", ImageState::kReady, -1h), "1");
  BuildView& fresh = AddBuild("b");
  fresh.state_time = EndOfBuild(image, kNow);
  EXPECT_EQ(CurrentBuild(image)->id, BuildId("b"));
  EXPECT_GT(EndOfUpload(image, kCloud, kNow), kNow + 1h);
  EXPECT_EQ(EndOfUpload(image, kOther, kNow), kNow);
  EXPECT_EQ(EndOfBuild(image, kNow + 2h), kNow + 2h);
}

TEST_F(ImageLifeTest, OnlyTheCurrentBuildIsUploaded) {
  AddBuild("old", ImageState::kReady, 2h);
  AddBuild("new", ImageState::kReady, 1h);
  AddBuild("failed", ImageState::kFailed, 1min);
  EXPECT_EQ(DecideUploads(image, spec).at(0).build, BuildId("new"));
}

TEST_F(ImageLifeTest, WhyNothingIsUploaded) {
  auto why = [&] {
    UploadDecision decision = DecideUploads(image, spec).at(0);
    EXPECT_EQ(decision.build, std::nullopt);
    return decision.why_not;
  };
  EXPECT_EQ(why(), NoUploadReason::kNoBuild);
  AddBuild("a");
  image.builds[0].local_formats = {"raw"};
  EXPECT_EQ(why(), NoUploadReason::kElsewhere);
  image.builds[0].formats = {"raw"};
  EXPECT_EQ(why(), NoUploadReason::kNotBuilt);
  image.builds[0].formats = {"qcow2"};
  image.builds[0].local_formats = {"qcow2"};
  image.builds[0].uploading_to = {kCloud};
  EXPECT_EQ(why(), NoUploadReason::kBusy);
  AddUpload(image.builds[0], "1");
  EXPECT_EQ(why(), NoUploadReason::kUploaded);
  spec.providers[kCloud].is_paused = true;
  EXPECT_EQ(why(), NoUploadReason::kPaused);
}

TEST_F(ImageLifeTest, UnneededFormats) {
  BuildView& build = AddBuild("a");
  build.local_formats = {"qcow2", "raw", "vhd"};
  AddUpload(build, "1");
  spec.providers[kOther] = {.format = "vhd"};
  EXPECT_THAT(UnneededFormats(build, spec), IsEmpty());
  spec.delete_after_upload = true;
  EXPECT_THAT(UnneededFormats(build, spec), ElementsAre("qcow2", "raw"));
  spec.keep_formats = {"raw"};
  EXPECT_THAT(UnneededFormats(build, spec), ElementsAre("qcow2"));
  build.state = ImageState::kBuilding;
  EXPECT_THAT(UnneededFormats(build, spec), IsEmpty());
}

TEST_F(ImageLifeTest, TwoBuildsAreRetainedAndAllThatAreInUse) {
  for (int i = 1; i <= 4; ++i)
    AddBuild(std::string(1, static_cast<char>('a' + i)), ImageState::kReady, i * 1h);
  AddUpload(image.builds[2], "1");  // the third has the provider's only upload
  CleanupPlan plan = Plan();
  EXPECT_THAT(plan.uploads, IsEmpty());
  EXPECT_THAT(plan.mark, ElementsAre(BuildRemoval{image.builds[3].id, RemovalReason::kSuperseded}));
}

TEST_F(ImageLifeTest, OldUploadsAreRemovedWhenThereAreTwoNewerOnes) {
  for (int i = 1; i <= 3; ++i) {
    AddUpload(AddBuild(std::string(1, static_cast<char>('a' + i)), ImageState::kReady, i * 1h), "1");
  }
  EXPECT_THAT(PlannedUploads(), ElementsAre("d/cloud/1"));
  EXPECT_THAT(Plan().mark, IsEmpty()) << "its upload is still there";
  image.builds[2].uploads[0].state = ImageState::kDeleting;
  EXPECT_THAT(Plan().mark, ElementsAre(BuildRemoval{BuildId("d"), RemovalReason::kSuperseded}));
  image.builds[2].state = ImageState::kDeleting;
  EXPECT_THAT(Plan().remove, IsEmpty());
  image.builds[2].uploads.clear();
  EXPECT_THAT(Plan().remove, ElementsAre(BuildId("d")));
}

TEST_F(ImageLifeTest, FailedUploadsOfRetainedBuildsAreRemoved) {
  BuildView& build = AddBuild("a");
  AddUpload(build, "1", ImageState::kFailed);
  AddUpload(build, "2", ImageState::kDeleting);
  AddUpload(build, "3", ImageState::kUploading);
  AddUpload(build, "4", ImageState::kUploading, kOther);
  build.uploading_to = {kOther};
  AddUpload(build, "5", ImageState::kReady);
  AddUpload(build, "6", ImageState::kFailed, ProviderName("unknown"));
  spec.providers[kOther] = {.format = "qcow2"};
  EXPECT_THAT(PlannedUploads(), UnorderedElementsAre("a/cloud/1", "a/cloud/2", "a/cloud/3"));
}

// B-failed-build
TEST_F(ImageLifeTest, TheLastFailureStaysUntilANewerBuildHasEnded) {
  AddBuild("ready", ImageState::kReady, 3h);
  AddBuild("first", ImageState::kFailed, 2h).explains_failure = true;
  AddBuild("second", ImageState::kFailed, 1h).explains_failure = true;
  EXPECT_THAT(Plan().mark, ElementsAre(BuildRemoval{BuildId("first"), RemovalReason::kFailed}));
  AddBuild("running", ImageState::kBuilding, 1min);
  image.is_build_locked = true;
  EXPECT_THAT(Plan().mark, ElementsAre(BuildRemoval{BuildId("first"), RemovalReason::kFailed}));
  image.builds.back().state = ImageState::kReady;
  EXPECT_EQ(Plan().mark.size(), 2u);
  image.builds.pop_back();
  image.builds.back().state = ImageState::kDeleting;  // by an operator, or a Python builder
  EXPECT_THAT(Plan().remove, ElementsAre(BuildId("second")));
  EXPECT_EQ(PlanCleanup(image, nullptr, {kCloud}).mark.size(), 2u)
      << "nothing stays of an image without settings";
}

TEST_F(ImageLifeTest, AFailureWithoutAReasonDoesNotStay) {
  AddBuild("failed", ImageState::kFailed);
  EXPECT_THAT(Plan().mark, ElementsAre(BuildRemoval{BuildId("failed"), RemovalReason::kFailed}));
}

TEST_F(ImageLifeTest, TheLastFailedUploadStaysUntilANewerOneHasEnded) {
  BuildView& build = AddBuild("a");
  for (std::string id : {"1", "2"}) AddUpload(build, id, ImageState::kFailed).explains_failure = true;
  build.uploads[1].state_time += 1min;
  EXPECT_THAT(PlannedUploads(), ElementsAre("a/cloud/1"));
  AddUpload(build, "3").state_time += 2min;
  EXPECT_THAT(PlannedUploads(), ElementsAre("a/cloud/1", "a/cloud/2"));
}

TEST_F(ImageLifeTest, ABuildInProgressIsLeftAloneAnAbandonedOneIsNot) {
  AddBuild("b", ImageState::kBuilding);
  image.is_build_locked = true;
  EXPECT_THAT(Plan().mark, IsEmpty());
  image.is_build_locked = false;
  EXPECT_THAT(Plan().mark, ElementsAre(BuildRemoval{BuildId("b"), RemovalReason::kAbandoned}));
}

TEST_F(ImageLifeTest, AnImageThatIsNotConfiguredIsRemovedCompletely) {
  AddUpload(AddBuild("a"), "1");
  CleanupPlan plan = PlanCleanup(image, nullptr, {kCloud});
  EXPECT_THAT(plan.uploads,
              ElementsAre(UploadRemoval{BuildId("a"), kCloud, UploadId("1"), RemovalReason::kNotWanted}));
  EXPECT_FALSE(plan.is_image_unused);
  image.builds.clear();
  EXPECT_TRUE(PlanCleanup(image, nullptr, {kCloud}).is_image_unused);  // D-44
  EXPECT_FALSE(PlanCleanup(image, &spec, {kCloud}).is_image_unused);
}

TEST_F(ImageLifeTest, MarkedBuildsAndUploadsAreRemoved) {
  BuildView& build = AddBuild("a", ImageState::kDeleting);
  AddUpload(build, "1");
  EXPECT_THAT(PlannedUploads(), ElementsAre("a/cloud/1"));
}

}  // namespace
}  // namespace nodepool::sched
