#include <fmt/format.h>

#include <algorithm>

#include "store/paths.h"
#include "store/repeat.h"
#include "store/store.h"
#include "store/transaction.h"

namespace nodepool::store {

template <class Stored>
Task<std::optional<Stored>> Store::Read(typename RecordKind<Stored>::Id id) {
  zk::Result<zk::NodeData> read = co_await Get(RecordKind<Stored>::Path(id));
  if (!read) co_return std::nullopt;
  co_return Decode<Stored>(id, *read, loop_.Now());
}

template <class Stored, class Record>
Task<bool> Store::Write(Stored& stored, std::optional<zk::HeldLock> lock,
                        std::function<Change(Record&)> change) {
  using Writing = Transaction<Stored>;
  Writing write(loop_, client_, random_, stored, std::move(change));
  if (lock) write.KeepLock(std::move(*lock));
  typename Writing::Outcome outcome = co_await write.Run();
  if (outcome == Writing::Outcome::kGone) {
    throw Error(Verdict::kNotFound,
                fmt::format("{} {} does not exist any more", RecordKind<Stored>::kName, stored.id));
  }
  co_return outcome == Writing::Outcome::kDone;
}

Task<> Store::Make(std::string path) {
  std::function<Task<zk::Result<zk::Created>>()> attempt = [&] {
    return client_.Create(path, "", zk::CreateMode::kPersistent);
  };
  zk::Result<zk::Created> made = co_await Repeat(loop_, random_, std::move(attempt));
  if (made || made.error() == zk::Code::kNodeExists) co_return;
  throw Error(made.error() == zk::Code::kNoNode ? Verdict::kNotFound : Verdict::kFail,
              fmt::format("creating {}: {}", path, zk::ToString(made.error())));
}

Task<> Store::RemoveAll(std::string path) {
  std::function<Task<zk::Result<>>()> attempt = [&] { return zk::DeleteRecursive(client_, path); };
  zk::Result<> removed = co_await Repeat(loop_, random_, std::move(attempt));
  if (removed || removed.error() == zk::Code::kNoNode) co_return;
  throw Error(Verdict::kConflict, fmt::format("deleting {}: {}", path, zk::ToString(removed.error())));
}

Task<std::optional<zk::HeldLock>> Store::TryLockBelow(std::string directory) {
  std::exception_ptr fault;
  try {
    std::optional<zk::HeldLock> lock = co_await locker_.TryAcquire(std::move(directory));
    co_return lock;
  } catch (...) {
    fault = std::current_exception();
  }
  if (VerdictOf(fault) != Verdict::kNotFound) std::rethrow_exception(fault);
  co_return std::nullopt;
}

Task<std::optional<zk::HeldLock>> Store::TryLockImage(ImageName image) {
  co_await Ensure(paths::Builds(image));
  std::optional<zk::HeldLock> lock = co_await TryLockBelow(paths::ImageLock(image));
  co_return lock;
}

Task<std::optional<zk::HeldLock>> Store::TryLockBuild(BuildKey build) {
  std::optional<zk::HeldLock> lock = co_await TryLockBelow(paths::BuildLock(build));
  co_return lock;
}

Task<std::optional<zk::HeldLock>> Store::TryLockUploads(BuildKey build, ProviderName provider) {
  std::string uploads = paths::Uploads(build, provider);
  std::vector<std::string> missing = {paths::Providers(build), zk::ParentPath(uploads), uploads};
  std::exception_ptr fault;
  try {
    for (const std::string& path : missing) co_await Make(path);
  } catch (...) {
    fault = std::current_exception();
  }
  if (fault && VerdictOf(fault) == Verdict::kNotFound) co_return std::nullopt;
  if (fault) std::rethrow_exception(fault);
  std::optional<zk::HeldLock> lock = co_await TryLockBelow(paths::UploadsLock(build, provider));
  co_return lock;
}

Task<std::optional<zk::HeldLock>> Store::TryLockUpload(UploadKey upload) {
  std::optional<zk::HeldLock> lock = co_await TryLockBelow(paths::UploadLock(upload));
  co_return lock;
}

Task<std::optional<StoredBuild>> Store::ReadBuild(BuildKey build) {
  std::optional<StoredBuild> stored = co_await Read<StoredBuild>(build);
  co_return stored;
}

Task<std::optional<StoredUpload>> Store::ReadUpload(UploadKey upload) {
  std::optional<StoredUpload> stored = co_await Read<StoredUpload>(upload);
  co_return stored;
}

Task<bool> Store::BuildExists(BuildKey build) {
  zk::Result<zk::NodeData> read = co_await Get(paths::Build(build));
  co_return read.has_value();
}

Task<std::vector<ImageName>> Store::ListImages() {
  std::vector<std::string> names = co_await Children(std::string(paths::kImages));
  std::vector<ImageName> images;
  for (std::string& name : names) images.emplace_back(std::move(name));
  std::ranges::sort(images);
  co_return images;
}

Task<std::vector<StoredBuild>> Store::ListBuilds(ImageName image) {
  std::vector<std::string> names = co_await Children(paths::Builds(image));
  std::ranges::sort(names);
  std::vector<StoredBuild> builds;
  for (const std::string& name : names) {
    if (!paths::IsBuildId(name)) continue;
    std::optional<StoredBuild> build;
    try {
      BuildKey key{image, BuildId(name)};
      build = co_await Read<StoredBuild>(key);
    } catch (const Error& error) {
      if (error.verdict() != Verdict::kInvalid) throw;
      log::Logger("nodepool.zk.ZooKeeper").Debug("{}", error.message());
    }
    if (build) builds.push_back(std::move(*build));
  }
  co_return builds;
}

Task<std::vector<StoredUpload>> Store::ListUploadsOf(BuildKey build, ProviderName provider) {
  std::vector<std::string> names = co_await Children(paths::Uploads(build, provider));
  std::ranges::sort(names);
  std::vector<StoredUpload> uploads;
  for (const std::string& name : names) {
    if (!paths::IsUploadId(name)) continue;
    std::optional<StoredUpload> upload;
    try {
      UploadKey key{build, provider, UploadId(name)};
      upload = co_await Read<StoredUpload>(key);
    } catch (const Error& error) {
      if (error.verdict() != Verdict::kInvalid) throw;
      log::Logger("nodepool.zk.ZooKeeper").Debug("{}", error.message());
    }
    if (upload) uploads.push_back(std::move(*upload));
  }
  co_return uploads;
}

Task<StoredBuild> Store::CreateBuild(ImageName image, ImageBuild record, zk::HeldLock lock) {
  StoredBuild build;
  build.id.image = image;
  build.id.build = BuildId(random_.UuidHex());
  build.record = std::move(record);
  std::string path = paths::Build(build.id);
  std::string data = ToJson(build.record);
  // The id is ours alone: found there already, it was made by an attempt whose answer
  // was lost.
  std::function<Task<zk::MultiResult>()> attempt = [&] {
    std::vector<zk::Op> ops;
    ops.emplace_back(zk::CheckOp{lock.path, -1});
    ops.emplace_back(zk::CreateOp{path, data, zk::CreateMode::kPersistent});
    return client_.Multi(std::move(ops));
  };
  if (!IsHeld(lock)) throw Error(Verdict::kLostSession, fmt::format("image {}: the lock is lost", image));
  zk::MultiResult result = co_await Repeat(loop_, random_, std::move(attempt));
  if (!result.ok() && result.failed == 0) {
    throw Error(Verdict::kLostSession, fmt::format("image {}: the lock is gone", image));
  }
  if (!result.ok() && result.code() != zk::Code::kNodeExists) {
    throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(result.code())));
  }
  build.revision.version = 0;
  co_return build;
}

Task<StoredUpload> Store::CreateUpload(BuildKey build, ProviderName provider, ImageUpload record,
                                       zk::HeldLock lock) {
  if (!IsHeld(lock)) throw Error(Verdict::kLostSession, fmt::format("build {}: the lock is lost", build));
  std::string path = co_await CreateSequential(paths::Uploads(build, provider) + "/", ToJson(record),
                                               zk::CreateMode::kPersistentSequential);
  StoredUpload upload;
  upload.id.build = build;
  upload.id.provider = provider;
  upload.id.upload = UploadId(zk::BaseName(path));
  upload.record = std::move(record);
  upload.revision.version = 0;
  co_return upload;
}

Task<bool> Store::UpdateBuild(StoredBuild& build, zk::HeldLock lock,
                              std::function<Change(ImageBuild&)> change) {
  co_return co_await Write<StoredBuild, ImageBuild>(build, std::move(lock), std::move(change));
}

Task<bool> Store::UpdateUpload(StoredUpload& upload, zk::HeldLock lock,
                               std::function<Change(ImageUpload&)> change) {
  co_return co_await Write<StoredUpload, ImageUpload>(upload, std::move(lock), std::move(change));
}

Task<bool> Store::UpdateUnlockedBuild(StoredBuild& build, std::function<Change(ImageBuild&)> change) {
  co_return co_await Write<StoredBuild, ImageBuild>(build, std::nullopt, std::move(change));
}

Task<bool> Store::UpdateUnlockedUpload(StoredUpload& upload, std::function<Change(ImageUpload&)> change) {
  co_return co_await Write<StoredUpload, ImageUpload>(upload, std::nullopt, std::move(change));
}

Task<> Store::RemoveUpload(UploadKey upload) { co_await RemoveAll(paths::Upload(upload)); }

Task<bool> Store::RemoveBuild(BuildKey build) {
  std::vector<std::string> providers = co_await Children(paths::Providers(build));
  for (const std::string& provider : providers) {
    UploadKey key{build, ProviderName(provider), UploadId()};
    std::vector<std::string> uploads = co_await Children(paths::Uploads(build, key.provider));
    for (const std::string& name : uploads) {
      if (!paths::IsUploadId(name)) continue;
      key.upload = UploadId(name);
      zk::Result<zk::NodeData> upload = co_await Get(paths::Upload(key));
      if (upload && !upload->data.empty()) co_return false;
    }
  }
  co_await RemoveAll(paths::Build(build));
  co_return true;
}

Task<bool> Store::RemoveImage(ImageName image) {
  std::optional<zk::HeldLock> lock = co_await TryLockImage(image);
  if (!lock) co_return false;
  for (const std::string& path : {paths::Pause(image), paths::BuildRequest(image)}) co_await Delete(path);
  // With a build, or somebody else at the lock, this is refused as a whole.
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::DeleteOp{lock->path, -1});
  ops.emplace_back(zk::DeleteOp{paths::ImageLock(image), -1});
  ops.emplace_back(zk::DeleteOp{paths::Builds(image), -1});
  ops.emplace_back(zk::DeleteOp{paths::Image(image), -1});
  std::exception_ptr fault;
  bool is_removed = false;
  try {
    zk::MultiResult removed = co_await client_.Multi(std::move(ops));
    is_removed = removed.ok();
  } catch (...) {
    fault = std::current_exception();
  }
  co_await StayAwake();
  Task<> unlock = Unlock(std::move(*lock));
  co_await Shielded(std::move(unlock));
  if (fault) std::rethrow_exception(fault);
  co_return is_removed;
}

Task<> Store::RequestBuild(ImageName image) { co_await Ensure(paths::BuildRequest(image)); }

Task<std::optional<Revision>> Store::ReadBuildRequest(ImageName image) {
  zk::Result<zk::NodeData> read = co_await Get(paths::BuildRequest(image));
  if (!read) co_return std::nullopt;
  co_return RevisionOf(read->stat);
}

Task<> Store::RemoveBuildRequest(ImageName image, Revision seen) {
  std::optional<Revision> now = co_await ReadBuildRequest(image);
  if (!now || now->mzxid != seen.mzxid) co_return;
  std::string path = paths::BuildRequest(image);
  std::function<Task<zk::Result<>>()> attempt = [&] { return client_.Delete(path, seen.version); };
  zk::Result<> removed = co_await Repeat(loop_, random_, std::move(attempt));
  if (removed || removed.error() == zk::Code::kNoNode || removed.error() == zk::Code::kBadVersion) co_return;
  throw Error(Verdict::kFail, fmt::format("deleting {}: {}", path, zk::ToString(removed.error())));
}

Task<> Store::PauseImage(ImageName image) { co_await Make(paths::Pause(image)); }

Task<> Store::UnpauseImage(ImageName image) { co_await Delete(paths::Pause(image)); }

}  // namespace nodepool::store
