#include "store/images.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log/logging.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

// The record, if it exists and can be parsed.
template <class Stored>
Task<std::optional<Stored>> ReadIfValid(Tree& tree, typename RecordKind<Stored>::Id id) {
  Outcome<std::optional<Stored>> read = co_await Attempt(ReadRecord<Stored>(tree, std::move(id)));
  if (read) co_return std::move(*read);
  if (!FailedWith(read, Verdict::kInvalid)) read.error().Rethrow();
  log::Logger("nodepool.zk.ZooKeeper").Debug("{}", read.error().message());
  co_return std::nullopt;
}

Task<std::optional<zk::HeldLock>> MakeUploadsAndLock(Tree& tree, BuildKey build, ProviderName provider) {
  std::string uploads = paths::Uploads(build, provider);
  std::vector<std::string> missing = {paths::Providers(build), zk::ParentPath(uploads), uploads};
  for (const std::string& path : missing) co_await tree.Make(path);
  std::optional<zk::HeldLock> lock = co_await tree.TryLock(paths::UploadsLock(build, provider));
  co_return lock;
}

Task<bool> RemoveLocked(Tree& tree, ImageName image, zk::HeldLock lock) {
  for (const std::string& path : {paths::Pause(image), paths::BuildRequest(image)})
    co_await tree.Delete(path);
  lock.BeginRelease();
  // With a build, or another process at the lock, this is refused as a whole.
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::DeleteOp{lock.path, -1});
  ops.emplace_back(zk::DeleteOp{paths::ImageLock(image), -1});
  ops.emplace_back(zk::DeleteOp{paths::Builds(image), -1});
  ops.emplace_back(zk::DeleteOp{paths::Image(image), -1});
  zk::MultiResult removed = co_await tree.client().Multi(std::move(ops));
  co_return removed.ok();
}

}  // namespace

Task<std::optional<zk::HeldLock>> Images::TryLock(ImageName image) {
  co_await tree_.Ensure(paths::Builds(image));
  std::optional<zk::HeldLock> lock = co_await IfExists(tree_.TryLock(paths::ImageLock(image)));
  co_return lock;
}

Task<std::optional<zk::HeldLock>> Images::TryLockBuild(BuildKey build) {
  return IfExists(tree_.TryLock(paths::BuildLock(build)));
}

Task<std::optional<zk::HeldLock>> Images::TryLockUploads(BuildKey build, ProviderName provider) {
  return IfExists(MakeUploadsAndLock(tree_, std::move(build), std::move(provider)));
}

Task<std::optional<zk::HeldLock>> Images::TryLockUpload(UploadKey upload) {
  return IfExists(tree_.TryLock(paths::UploadLock(upload)));
}

Task<std::optional<StoredBuild>> Images::ReadBuild(BuildKey build) {
  return ReadRecord<StoredBuild>(tree_, std::move(build));
}

Task<std::optional<StoredUpload>> Images::ReadUpload(UploadKey upload) {
  return ReadRecord<StoredUpload>(tree_, std::move(upload));
}

Task<bool> Images::BuildExists(BuildKey build) {
  zk::Result<zk::NodeData> read = co_await tree_.Get(paths::Build(build));
  co_return read.has_value();
}

Task<std::vector<ImageName>> Images::List() {
  std::vector<std::string> names = co_await tree_.Children(std::string(paths::kImages));
  std::vector<ImageName> images;
  for (std::string& name : names) images.emplace_back(std::move(name));
  std::ranges::sort(images);
  co_return images;
}

Task<std::vector<StoredBuild>> Images::ListBuilds(ImageName image) {
  std::vector<std::string> names = co_await tree_.Children(paths::Builds(image));
  std::ranges::sort(names);
  std::vector<StoredBuild> builds;
  for (const std::string& name : names) {
    if (!paths::IsBuildId(name)) continue;
    BuildKey key{image, BuildId(name)};
    std::optional<StoredBuild> build = co_await ReadIfValid<StoredBuild>(tree_, std::move(key));
    if (build) builds.push_back(std::move(*build));
  }
  co_return builds;
}

Task<std::vector<StoredUpload>> Images::ListUploads(BuildKey build, ProviderName provider) {
  std::vector<std::string> names = co_await tree_.Children(paths::Uploads(build, provider));
  std::ranges::sort(names);
  std::vector<StoredUpload> uploads;
  for (const std::string& name : names) {
    if (!paths::IsUploadId(name)) continue;
    UploadKey key{build, provider, UploadId(name)};
    std::optional<StoredUpload> upload = co_await ReadIfValid<StoredUpload>(tree_, std::move(key));
    if (upload) uploads.push_back(std::move(*upload));
  }
  co_return uploads;
}

Task<StoredBuild> Images::CreateBuild(ImageName image, ImageBuild record, zk::HeldLock lock) {
  StoredBuild build;
  build.id.image = image;
  build.id.build = BuildId(tree_.random().UuidHex());
  build.record = std::move(record);
  std::string path = paths::Build(build.id);
  std::string data = ToJson(build.record);
  // Only this call has the id: if it exists already, it was created by an attempt whose answer was
  // lost.
  auto attempt = [&] {
    std::vector<zk::Op> ops;
    ops.emplace_back(zk::CheckOp{lock.path, -1});
    ops.emplace_back(zk::CreateOp{path, data, zk::CreateMode::kPersistent});
    return tree_.client().Multi(std::move(ops));
  };
  if (!tree_.IsHeld(lock))
    throw Error(Verdict::kLostSession, fmt::format("image {}: the lock is lost", image));
  zk::MultiResult result = co_await tree_.Repeat<zk::MultiResult>(attempt);
  if (!result.ok() && result.failed == 0) {
    throw Error(Verdict::kLostSession, fmt::format("image {}: the lock is gone", image));
  }
  if (!result.ok() && result.code() != zk::Code::kNodeExists) {
    throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(result.code())));
  }
  build.revision.version = 0;
  co_return build;
}

Task<StoredUpload> Images::CreateUpload(BuildKey build, ProviderName provider, ImageUpload record,
                                        zk::HeldLock lock) {
  if (!tree_.IsHeld(lock))
    throw Error(Verdict::kLostSession, fmt::format("build {}: the lock is lost", build));
  std::string path = co_await tree_.CreateSequential(paths::Uploads(build, provider) + "/", ToJson(record),
                                                     zk::CreateMode::kPersistentSequential);
  StoredUpload upload;
  upload.id.build = build;
  upload.id.provider = provider;
  upload.id.upload = UploadId(zk::BaseName(path));
  upload.record = std::move(record);
  upload.revision.version = 0;
  co_return upload;
}

template <class Stored>
Task<bool> Images::Update(Stored& stored, zk::HeldLock lock, ChangeOf<Stored> change) {
  return UpdateRecord<Stored>(tree_, stored, std::move(lock), std::move(change));
}

template <class Stored>
Task<bool> Images::UpdateUnlocked(Stored& stored, ChangeOf<Stored> change) {
  return UpdateRecord<Stored>(tree_, stored, std::nullopt, std::move(change));
}

template Task<bool> Images::Update(StoredBuild&, zk::HeldLock, ChangeOf<StoredBuild>);
template Task<bool> Images::Update(StoredUpload&, zk::HeldLock, ChangeOf<StoredUpload>);
template Task<bool> Images::UpdateUnlocked(StoredBuild&, ChangeOf<StoredBuild>);
template Task<bool> Images::UpdateUnlocked(StoredUpload&, ChangeOf<StoredUpload>);

Task<> Images::RemoveUpload(UploadKey upload) { co_await tree_.DeleteAll(paths::Upload(upload)); }

Task<bool> Images::RemoveBuild(BuildKey build) {
  std::vector<std::string> providers = co_await tree_.Children(paths::Providers(build));
  for (const std::string& provider : providers) {
    UploadKey key{build, ProviderName(provider), UploadId()};
    std::vector<std::string> uploads = co_await tree_.Children(paths::Uploads(build, key.provider));
    for (const std::string& name : uploads) {
      if (!paths::IsUploadId(name)) continue;
      key.upload = UploadId(name);
      zk::Result<zk::NodeData> upload = co_await tree_.Get(paths::Upload(key));
      if (upload && !upload->data.empty()) co_return false;
    }
  }
  co_await tree_.DeleteAll(paths::Build(build));
  co_return true;
}

Task<bool> Images::Remove(ImageName image) {
  auto remove = [this, image](const zk::HeldLock& lock) { return RemoveLocked(tree_, image, lock); };
  return tree_.Holding(TryLock(image), remove);
}

std::string Images::UploadPath(const UploadKey& key) { return paths::Upload(key); }

Task<> Images::RequestBuild(ImageName image) { co_await tree_.Ensure(paths::BuildRequest(image)); }

Task<std::optional<Revision>> Images::ReadBuildRequest(ImageName image) {
  zk::Result<zk::NodeData> read = co_await tree_.Get(paths::BuildRequest(image));
  if (!read) co_return std::nullopt;
  co_return RevisionOf(read->stat);
}

Task<> Images::RemoveBuildRequest(ImageName image, Revision seen) {
  std::optional<Revision> now = co_await ReadBuildRequest(image);
  if (!now || now->mzxid != seen.mzxid) co_return;
  std::string path = paths::BuildRequest(image);
  auto attempt = [&] { return tree_.client().Delete(path, seen.version); };
  zk::Result<> removed = co_await tree_.Repeat<zk::Result<>>(attempt);
  if (removed || removed.error() == zk::Code::kNoNode || removed.error() == zk::Code::kBadVersion) co_return;
  throw Error(Verdict::kFail, fmt::format("deleting {}: {}", path, zk::ToString(removed.error())));
}

Task<> Images::Pause(ImageName image) { co_await tree_.Make(paths::Pause(image)); }

Task<> Images::Unpause(ImageName image) { co_await tree_.Delete(paths::Pause(image)); }

// The version of the provider's znode counts the requests.
Task<> Images::RetryUpload(BuildKey build, ProviderName provider) {
  std::string path = zk::ParentPath(paths::Uploads(build, provider));
  co_await tree_.Make(paths::Providers(build));
  co_await tree_.Make(path);
  auto attempt = [&] { return tree_.client().Set(path, ""); };
  zk::Result<zk::Stat> written = co_await tree_.Repeat<zk::Result<zk::Stat>>(attempt);
  if (written) co_return;
  Verdict verdict = written.error() == zk::Code::kNoNode ? Verdict::kNotFound : Verdict::kFail;
  throw Error(verdict, fmt::format("writing {}: {}", path, zk::ToString(written.error())));
}

}  // namespace nodepool::store
