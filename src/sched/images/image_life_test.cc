#include "sched/images/image_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

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

const std::vector<ProviderName>& Providers() {
  static const std::vector<ProviderName> providers = {ProviderName("a"), ProviderName("b"),
                                                      ProviderName("c")};
  return providers;
}

bool Toss(int one_in) { return *rc::gen::inRange(0, one_in) == 0; }

// builder.md 12.1
TEST(EmptyBuildTest, ItIsLeftAfterFiveMinutes) {
  EXPECT_FALSE(IsLeftEmpty(kNow, kNow + 5min));
  EXPECT_TRUE(IsLeftEmpty(kNow, kNow + 5min + 1ns));
}

// An image in any state, and a configuration.
struct Case {
  ImageView image;
  ImageSpec spec;
  std::set<ProviderName> known;
  WallTime now = FromSeconds(1'700'000'000);

  Case() {
    image.is_build_locked = Toss(3);
    image.is_requested = Toss(3);
    image.is_paused = Toss(4);
    spec.formats = {"qcow2"};
    spec.delete_after_upload = Toss(2);
    for (const ProviderName& provider : Providers()) {
      if (!Toss(4)) known.insert(provider);
      if (known.contains(provider) && !Toss(4)) {
        spec.providers[provider] = {*rc::gen::element<std::string>("qcow2", "raw"), Toss(4)};
      }
    }
    for (int i = *rc::gen::inRange(0, 7); i > 0; --i) AddBuild(i);
  }

  void AddBuild(int number) {
    BuildView& build = image.builds.emplace_back();
    build.id = BuildId(std::to_string(number));
    build.state = *rc::gen::element(ImageState::kReady, ImageState::kReady, ImageState::kBuilding,
                                    ImageState::kFailed, ImageState::kDeleting);
    // No two at the same instant.
    build.state_time = now - std::chrono::minutes(*rc::gen::inRange(0, 5000)) - std::chrono::seconds(number);
    build.formats = {"qcow2"};
    build.is_own = Toss(2);
    if (Toss(2)) build.local_formats = {"qcow2"};
    if (Toss(3)) build.local_formats.insert("raw");
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
      UploadView upload;
      upload.provider = *rc::gen::elementOf(Providers());
      upload.id = UploadId(std::to_string(i));
      upload.state = *rc::gen::element(ImageState::kReady, ImageState::kReady, ImageState::kUploading,
                                       ImageState::kFailed, ImageState::kDeleting);
      upload.state_time = build.state_time + std::chrono::milliseconds(i);
      if (upload.state == ImageState::kUploading && Toss(2)) build.uploading_to.insert(upload.provider);
      build.uploads.push_back(upload);
    }
  }
  CleanupPlan Plan() const { return PlanCleanup(image, &spec, known); }
};

const UploadView& Find(const ImageView& image, const UploadRemoval& removal) {
  auto build = std::ranges::find(image.builds, removal.build, &BuildView::id);
  return *std::ranges::find_if(build->uploads, [&](const UploadView& upload) {
    return upload.id == removal.upload && upload.provider == removal.provider;
  });
}

// Applies a plan as if everything in it succeeded.
void Apply(const CleanupPlan& plan, ImageView& image) {
  for (const UploadRemoval& removal : plan.uploads) {
    auto build = std::ranges::find(image.builds, removal.build, &BuildView::id);
    std::erase_if(build->uploads, [&](const UploadView& upload) {
      return upload.id == removal.upload && upload.provider == removal.provider;
    });
  }
  for (const BuildRemoval& removal : plan.mark) {
    std::ranges::find(image.builds, removal.build, &BuildView::id)->state = ImageState::kDeleting;
  }
  std::erase_if(image.builds, [&](const BuildView& build) {
    return std::ranges::find(plan.remove, build.id) != plan.remove.end();
  });
}

// The usable uploads of a provider: ready ones of ready builds.
int Usable(const ImageView& image, const ProviderName& provider) {
  int count = 0;
  for (const BuildView& build : image.builds) {
    if (build.state != ImageState::kReady) continue;
    for (const UploadView& upload : build.uploads) {
      if (upload.provider == provider && upload.state == ImageState::kReady) ++count;
    }
  }
  return count;
}

TEST(ImageLifePropertyTest, AProviderThatListsTheImageKeepsTwoUsableUploads) {
  EXPECT_TRUE(rc::check([] {
    Case c;
    ImageView before = c.image;
    for (int i = 0; i < 5; ++i) Apply(c.Plan(), c.image);
    for (const auto& [provider, part] : c.spec.providers) {
      RC_ASSERT(Usable(c.image, provider) >= std::min(2, Usable(before, provider)));
    }
  }));
}

TEST(ImageLifePropertyTest, NothingInProgressIsTouched) {
  EXPECT_TRUE(rc::check([] {
    Case c;
    CleanupPlan plan = c.Plan();
    for (const UploadRemoval& removal : plan.uploads) {
      auto build = std::ranges::find(c.image.builds, removal.build, &BuildView::id);
      bool is_in_progress = Find(c.image, removal).state == ImageState::kUploading;
      RC_ASSERT(!(is_in_progress && build->IsUploading(removal.provider)));
      RC_ASSERT(c.known.contains(removal.provider));
    }
    for (const BuildRemoval& removal : plan.mark) {
      auto build = std::ranges::find(c.image.builds, removal.build, &BuildView::id);
      RC_ASSERT(!(build->state == ImageState::kBuilding && c.image.is_build_locked));
      // Nothing usable depends on a build whose files are deleted.
      for (const UploadView& upload : build->uploads) RC_ASSERT(upload.state == ImageState::kDeleting);
    }
    for (const BuildId& id : plan.remove) {
      RC_ASSERT(std::ranges::find(c.image.builds, id, &BuildView::id)->uploads.empty());
    }
  }));
}

// Repeated cleaning ends, and then only retained builds and uploads are left.
TEST(ImageLifePropertyTest, CleaningEnds) {
  EXPECT_TRUE(rc::check([] {
    Case c;
    for (int i = 0; i < 5; ++i) Apply(c.Plan(), c.image);
    CleanupPlan rest = c.Plan();
    RC_ASSERT((rest.uploads.empty() && rest.mark.empty() && rest.remove.empty()));
    for (const auto& [provider, part] : c.spec.providers) {
      int outside = 0;  // of the two retained builds
      std::set<BuildId> retained = RetainedBuilds(c.image, true);
      for (const BuildView& build : c.image.builds) {
        bool is_in_progress = build.state == ImageState::kBuilding && c.image.is_build_locked;
        if (retained.contains(build.id) || is_in_progress) continue;
        for (const UploadView& upload : build.uploads) {
          if (upload.provider == provider && !build.IsUploading(provider)) ++outside;
        }
      }
      RC_ASSERT(outside <= 2);
    }
  }));
}

TEST(ImageLifePropertyTest, OnlyLocalBuildsThatAProviderLacksAreUploaded) {
  EXPECT_TRUE(rc::check([] {
    Case c;
    for (const UploadDecision& decision : DecideUploads(c.image, c.spec)) {
      if (!decision.build) continue;
      auto build = std::ranges::find(c.image.builds, *decision.build, &BuildView::id);
      RC_ASSERT(&*build == CurrentBuild(c.image));
      RC_ASSERT(build->local_formats.contains(c.spec.providers.at(decision.provider).format));
      RC_ASSERT(!IsUploaded(*build, decision.provider));
      RC_ASSERT(!c.spec.providers.at(decision.provider).is_paused);
      // A file that is to be uploaded is not to be removed.
      for (const std::string& format : UnneededFormats(*build, c.spec)) {
        RC_ASSERT(format != c.spec.providers.at(decision.provider).format);
      }
    }
  }));
}

// A build is never due right after one that was due.
TEST(ImageLifePropertyTest, ABuildSettlesItsReason) {
  EXPECT_TRUE(rc::check([] {
    Case c;
    BuildDecision decision = DecideBuild(c.image, c.spec, c.now);
    if (!decision.reason) {
      RC_ASSERT((decision.why_not != NoBuildReason::kFresh || decision.due_at));
      return;
    }
    BuildView& fresh = c.image.builds.emplace_back();
    fresh.id = BuildId("fresh");
    fresh.state = ImageState::kReady;
    fresh.state_time = c.now + std::chrono::seconds(1);
    fresh.formats = c.spec.formats;
    fresh.is_own = true;
    fresh.local_formats = {c.spec.formats.begin(), c.spec.formats.end()};
    for (auto& [provider, part] : c.spec.providers) part.format = "qcow2";
    c.image.is_requested = false;
    RC_ASSERT(!DecideBuild(c.image, c.spec, c.now + std::chrono::seconds(2)).reason);
  }));
}

}  // namespace

}  // namespace nodepool::sched
