#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sched/images/image_build.h"
#include "sched/images/image_cleanup.h"
#include "sched/images/image_upload.h"

namespace nodepool::sched {
namespace {

const std::vector<ProviderName>& Providers() {
  static const std::vector<ProviderName> providers = {ProviderName("a"), ProviderName("b"),
                                                      ProviderName("c")};
  return providers;
}

bool Toss(int one_in) { return *rc::gen::inRange(0, one_in) == 0; }

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
