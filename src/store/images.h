#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// Images, builds and uploads in the tree.
class Images {
 public:
  // The type of function that changes the record of a StoredBuild or StoredUpload.
  template <class Stored>
  using ChangeOf = std::type_identity_t<std::function<Change(decltype(Stored::record)&)>>;

  explicit Images(Tree& tree) : tree_(tree) {}

  // --- Locks, taken without waiting ----------------------------------------
  // nullopt: held by another, or there is no such record. Released by Tree::Unlock(), best through
  // Tree::Holding().

  // For a builder that builds the image. Creates the image's znodes.
  Task<std::optional<zk::HeldLock>> TryLock(ImageName image);
  // For a process that marks a build for deletion.
  Task<std::optional<zk::HeldLock>> TryLockBuild(BuildKey build);
  // For a builder that uploads the build to the provider. Creates the directory of the uploads.
  Task<std::optional<zk::HeldLock>> TryLockUploads(BuildKey build, ProviderName provider);
  // For a process that marks or removes an upload.
  Task<std::optional<zk::HeldLock>> TryLockUpload(UploadKey upload);

  // --- Records --------------------------------------------------------------
  // nullopt: does not exist. Error(kInvalid): cannot be parsed or has no data.
  Task<std::optional<StoredBuild>> ReadBuild(BuildKey build);
  Task<std::optional<StoredUpload>> ReadUpload(UploadKey upload);
  // Whether the znode exists, with whatever data.
  Task<bool> BuildExists(BuildKey build);
  // All of them, read from ZooKeeper; those that cannot be parsed are left out.
  Task<std::vector<ImageName>> List();
  Task<std::vector<StoredBuild>> ListBuilds(ImageName image);
  Task<std::vector<StoredUpload>> ListUploads(BuildKey build, ProviderName provider);

  // Write under a lock; errors as LockedRecord. Creating assigns a new id, or the next number.
  Task<StoredBuild> CreateBuild(ImageName image, ImageBuild record, zk::HeldLock lock);
  Task<StoredUpload> CreateUpload(BuildKey build, ProviderName provider, ImageUpload record,
                                  zk::HeldLock lock);
  // Applies `change` to the newest version; false when it skipped.
  template <class Stored>
  Task<bool> Update(Stored& stored, zk::HeldLock lock, ChangeOf<Stored> change);
  // The same without a lock, as the command line does (builder.md 16).
  template <class Stored>
  Task<bool> UpdateUnlocked(Stored& stored, ChangeOf<Stored> change);

  // Removes an upload's record with everything below it; a missing one is success.
  Task<> RemoveUpload(UploadKey upload);
  // Removes a build's record with everything below it; false when it has uploads. Uploads without
  // data do not count.
  Task<bool> RemoveBuild(BuildKey build);
  // Removes what is left of an image without builds; false when it has some, or
  // another process is busy with it (D-44).
  Task<bool> Remove(ImageName image);

  // The path of an upload record, as a node's image_id (launcher.md 17).
  static std::string UploadPath(const UploadKey& key);

  // --- The operator's requests (builder.md 14) ------------------------------
  // All may be repeated.
  Task<> RequestBuild(ImageName image);
  // The request for a build, read from ZooKeeper; nullopt: there is none.
  Task<std::optional<Revision>> ReadBuildRequest(ImageName image);
  // Removes the request that was `seen`. One that was created or written since stays.
  Task<> RemoveBuildRequest(ImageName image, Revision seen);
  // Error(kNotFound): there is no such image.
  Task<> Pause(ImageName image);
  Task<> Unpause(ImageName image);
  // Asks builders to upload the build to the provider at once, also if they wait after a failure (builder.md
  // 10.6). Error(kNotFound): there is no such build.
  Task<> RetryUpload(BuildKey build, ProviderName provider);

 private:
  Tree& tree_;
};

}  // namespace nodepool::store
