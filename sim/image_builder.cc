#include "sim/image_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "builder/validation.h"
#include "model/validation.h"

namespace nodepool::sim {
namespace {

using std::chrono::seconds;
using store::Change;

constexpr Duration kLongestPause = seconds(40);
constexpr Duration kLongestCheck = seconds(20);
constexpr double kBadChecks = 0.4;
constexpr Duration kTimeout = std::chrono::minutes(8);

builder::Context ContextOf(const ImageBuilder::Environment& environment, Random& random,
                           metrics::Metrics& metrics, store::Store& store, store::Caches& caches,
                           process::Runner& runner, builder::LocalFiles& files) {
  return {.config = environment.scenario.launchers.front(),
          .loop = environment.loop,
          .random = random,
          .metrics = metrics,
          .store = store,
          .caches = caches,
          .runner = runner,
          .files = files};
}

ImageUpload UploadIn(ImageState state, WallTime now) {
  ImageUpload upload;
  upload.state = state;
  upload.state_time = now;
  return upload;
}

}  // namespace

Task<process::Exit> ImageBuilder::Checks::Run(process::Command /*command*/) {
  Random& random = owner_.random_;
  co_await owner_.environment_.loop.SleepFor(
      std::chrono::duration_cast<Duration>(random.Between(0, 1) * kLongestCheck));
  bool is_bad = !owner_.is_calm_ && random.Between(0, 1) < kBadChecks;
  co_return process::Exit{is_bad ? 1 : 0, false, ""};
}

ImageBuilder::ImageBuilder(Environment environment, std::uint64_t seed, std::string name)
    : environment_(environment),
      random_(seed),
      zk_(environment.loop, environment.zk, environment.faults),
      store_(environment.loop, zk_, random_),
      caches_(environment.loop, zk_),
      files_(environment.blocking_pool),
      context_(ContextOf(environment, random_, metrics_, store_, caches_, checks_, files_)),
      participant_(std::make_shared<Participant>()),
      tasks_(environment.loop, log::Logger("sim.image_builder")) {
  participant_->name = std::move(name);
  participant_->client = &zk_;
  environment_.inspector.Add(participant_);
  tasks_.Spawn("images", Live());
}

ImageBuilder::~ImageBuilder() { participant_->client = nullptr; }

void ImageBuilder::Vanish(testing::MemoryZk::UnderWay under_way) {
  if (environment_.inspector.trace) environment_.inspector.trace("* " + participant_->name + " vanishes");
  zk_.Kill(under_way);
  tasks_.CancelAll();
}

Task<> ImageBuilder::Live() {
  build_ = co_await FindBuild();
  std::set<ProviderName> providers;
  for (const auto& [key, pool] : environment_.scenario.pools) providers.insert(key.provider);
  for (const ProviderName& provider : providers)
    tasks_.Spawn("images of " + provider.value, Supply(provider));
}

// The one build that there is.
Task<store::BuildKey> ImageBuilder::FindBuild() {
  const ImageName image(kImage);
  while (true) {
    std::vector<store::StoredBuild> builds = co_await store_.images.ListBuilds(image);
    if (!builds.empty()) co_return builds.front().id;
    std::optional<zk::HeldLock> lock = co_await store_.images.TryLock(image);
    if (lock) {
      ImageBuild record;
      record.state = ImageState::kReady;
      record.state_time = environment_.loop.Now();
      Task<store::StoredBuild> create = store_.images.CreateBuild(image, std::move(record), *lock);
      Task<store::StoredBuild> locked = store_.tree.Holding(*lock, std::move(create));
      store::StoredBuild build = co_await std::move(locked);
      co_return build.id;
    }
    co_await environment_.loop.SleepFor(seconds(1));
  }
}

Task<> ImageBuilder::Supply(ProviderName provider) {
  while (true) {
    Duration pause = std::chrono::duration_cast<Duration>(random_.Between(0, 1) * kLongestPause);
    co_await environment_.loop.SleepFor(is_calm_ ? seconds(1) : pause);
    bool is_supplied = co_await HasReady(provider);
    if (is_calm_ && is_supplied) co_return;
    co_await Attempt(UploadOnce(provider));
  }
}

Task<bool> ImageBuilder::HasReady(ProviderName provider) {
  std::vector<store::StoredUpload> uploads = co_await store_.images.ListUploads(build_, provider);
  co_return std::ranges::any_of(
      uploads, [](const store::StoredUpload& upload) { return upload.record.state == ImageState::kReady; });
}

Task<> ImageBuilder::UploadOnce(ProviderName provider) {
  std::optional<zk::HeldLock> lock = co_await store_.images.TryLockUploads(build_, provider);
  if (!lock) co_return;  // of one that has vanished
  Task<> upload = UploadLocked(provider, *lock);
  co_await store_.tree.Holding(*lock, std::move(upload));
}

Task<> ImageBuilder::UploadLocked(ProviderName provider, zk::HeldLock lock) {
  co_await RemoveLeft(provider);
  ImageUpload record = UploadIn(ImageState::kUploading, environment_.loop.Now());
  Task<store::StoredUpload> create = store_.images.CreateUpload(build_, provider, std::move(record), lock);
  store::StoredUpload upload = co_await std::move(create);
  drivers::FakeCloud& cloud = *environment_.clouds.all.Find(provider);
  const std::string external_id =
      cloud.UploadImage(upload.id.str(), {{"nodepool_provider_name", provider.value},
                                          {"nodepool_build_id", build_.build.value},
                                          {"nodepool_upload_id", upload.id.upload.value}});
  auto note = [external_id](ImageUpload& record) {
    record.external_id = external_id;
    return Change::kWrite;
  };
  co_await store_.images.Update(upload, lock, note);
  Outcome<> valid = co_await Attempt(Validate(upload));
  WallTime now = environment_.loop.Now();
  auto end = [&valid, now](ImageUpload& record) {
    record.state = valid ? ImageState::kReady : ImageState::kFailed;
    record.state_time = now;
    return Change::kWrite;
  };
  co_await store_.images.Update(upload, lock, end);
  if (!valid) co_await Remove(upload);
}

// What one that has vanished, or failed, has left.
Task<> ImageBuilder::RemoveLeft(ProviderName provider) {
  std::vector<store::StoredUpload> uploads = co_await store_.images.ListUploads(build_, provider);
  for (store::StoredUpload& upload : uploads) {
    if (upload.record.state != ImageState::kReady) co_await Remove(std::move(upload));
  }
}

Task<> ImageBuilder::Remove(store::StoredUpload upload) {
  drivers::FakeCloud& cloud = *environment_.clouds.all.Find(upload.id.provider);
  if (upload.record.external_id) co_await cloud.DeleteImage(*upload.record.external_id);
  co_await store_.images.RemoveUpload(upload.id);
}

Task<> ImageBuilder::Validate(store::StoredUpload upload) {
  const driver::ProviderConfig& provider = *environment_.scenario.providers.at(upload.id.provider);
  std::optional<LabelName> label = builder::ValidationLabelOf(provider, upload.id.build.image);
  if (!label) co_return;
  builder::Validation validation{upload.id, *upload.record.external_id, {"check", kTimeout}, *label, {}};
  validation.note = [](std::string) -> Task<> { co_return; };
  co_await builder::Validate(context_, log::Logger("sim.image_builder"), std::move(validation));
}

}  // namespace nodepool::sim
