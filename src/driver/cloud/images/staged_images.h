#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"
#include "async/task.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/images/image_file.h"
#include "driver/driver.h"

namespace nodepool::driver::cloud {

// Whose an upload is, and what its file is called in the bucket: everything that it makes in the cloud is
// found by this. Builds and numbers come again in a copy of the tree, the attempt does not.
struct UploadMarks {
  std::string provider;
  std::string build;
  std::string upload;
  std::string attempt;  // random
  std::string key;      // of the object: "debian-0000000001-0123456789ab.raw"

  // Whether something with this metadata was made by the upload.
  bool AreOn(const std::map<std::string, std::string>& metadata) const;
  // By which the cloud recognises a repeated call; differs for each kind of call.
  std::string Token(const std::string& call) const;
};

// The upload's metadata as text; values that are not text are written as the Python implementation writes
// them ("True", "None").
std::map<std::string, std::string> TextMetadata(const ImageUploadParameters& upload);

// `format`: of the object, the end of its key. Error(kInvalid): the parameters name no build, upload and
// attempt.
UploadMarks MarksOf(const ImageUploadParameters& upload, const std::string& format);

// Whether the key is what an upload of the image calls its object: "<image>-<digits>-<hex
// digits>.<format>", or without the second number.
bool IsKeyOf(const std::string& key, const ImageName& image);

// The external id of an upload that has no image yet. A process that finds it in a record removes what the
// upload has left.
std::string UnfinishedId(const UploadMarks& marks);
// None: it is the id of an image.
std::optional<UploadMarks> ReadUnfinishedId(const std::string& external_id, const std::string& provider);

// Removes what is not wanted any more, for at most 30 seconds. What fails is logged as an error that begins
// with `left`, which names what is left.
Task<> RemoveQuietly(Loop& loop, log::Logger logger, std::string left, Task<> removal);

// An upload to a cloud where everything that it makes carries its marks: announces first by which id another
// process finds and removes what an unfinished upload has made, then ends as `make()` does. On failure or
// cancellation `remove()` removes here everything with the marks. Both are called at most once, and what they
// refer to outlives the task.
Task<std::string> UploadMarked(Loop& loop, log::Logger logger, const ImageUploadParameters& upload,
                               UploadMarks marks, std::function<Task<std::string>()> make,
                               std::function<Task<>()> remove);

// An image that any Nodepool has uploaded, as a cloud lists it.
struct UploadedImage {
  std::string id;  // its external id
  std::string name;
  std::map<std::string, std::string> metadata;  // of its upload
  std::string state;                            // the cloud's word for it
  enum class Progress { kPending, kReady, kFailed } progress = Progress::kPending;
};

// What was put for an upload: an object of a bucket, a disk.
struct StagedFile {
  std::string key;  // UploadMarks::key
  std::map<std::string, std::string> metadata;
  std::optional<WallTime> made;
};

// The images of a provider whose cloud makes them of files, which are put to a place of their own first.
// Everything carries the marks of its upload, so that what a failure or a crash leaves is found and removed
// by these alone. A driver derives the calls of its cloud.
class StagedImages {
 public:
  struct Traits {
    std::string format;     // of what is put, the end of its key
    std::string file_type;  // Resource::type of what is put: "object"
    Duration import_limit = std::chrono::hours(1);
  };

  StagedImages(AdapterEnvironment environment, std::shared_ptr<const ProviderConfig> config,
               log::Logger logger, Traits traits)
      : environment_(std::move(environment)),
        config_(std::move(config)),
        logger_(std::move(logger)),
        traits_(std::move(traits)) {}
  virtual ~StagedImages() = default;

  // As of Adapter::UploadImage. Announces first by which id another process removes what an unfinished upload
  // has made. What was put is removed in any case.
  Task<std::string> Upload(ImageUploadParameters upload);
  // As of Adapter::DeleteImage, also of an upload that was not finished. An image of another provider stays.
  Task<> Delete(std::string external_id);
  // As of Adapter::ListImages.
  Task<std::vector<ListedImage>> List();
  // Adds images, and files that are older than a day, to what is searched for leaks. What cannot be read is
  // logged and left out.
  Task<> AppendMarked(std::vector<Resource>& resources);
  // Deletes one of these; an image only if its metadata are still the same.
  Task<> DeleteMarked(Resource resource);

 protected:
  // An image that the cloud has begun to make.
  struct Begun {
    std::string id;
    std::string operation;  // by which the cloud says how it ends; empty: the image says it
  };

  const AdapterEnvironment& environment() const { return environment_; }

 private:
  // Throws before the first call if the cloud would refuse the upload in the end.
  virtual void Check(const ImageUploadParameters& upload) const = 0;

  // Whether a place for files is configured; the others of these are called only then.
  virtual bool HasFiles() const = 0;
  // `sent` is to be called with how many bytes of the file are there.
  virtual Task<> Put(std::shared_ptr<const SparseFile> file, std::string key,
                     std::map<std::string, std::string> metadata,
                     std::function<void(std::uint64_t)> sent) = 0;
  virtual Task<std::vector<StagedFile>> ListFiles(std::string prefix) = 0;
  // One that does not exist is success.
  virtual Task<> RemoveFile(std::string key) = 0;

  // `upload` and `marks` outlive the call.
  virtual Task<Begun> Import(const ImageUploadParameters& upload, const UploadMarks& marks) = 0;
  // The id of an image with the upload's name, where a refusal of Import says that there is one; empty: it
  // says something else.
  virtual std::string NamesakeOf(const ImageUploadParameters& upload, const Failure& refusal) const = 0;
  // Throws if the operation has failed, of which no image may tell.
  virtual Task<> CheckOperation(Begun begun) = 0;

  // None: there is no such image.
  virtual Task<std::optional<UploadedImage>> Find(std::string id) = 0;
  // All that have metadata of Nodepool's; with an attempt only those of its upload.
  virtual Task<std::vector<UploadedImage>> ListUploaded(std::string attempt) = 0;
  // One that does not exist is success. May end when the deletion has begun.
  virtual Task<> Remove(std::string id) = 0;

  Task<std::string> PutAndImport(const ImageUploadParameters& upload, const UploadMarks& marks);
  Task<std::string> ImportAndWait(const ImageUploadParameters& upload, const UploadMarks& marks);
  Task<> AwaitReady(Begun begun);
  Task<> RemoveUnfinished(UploadMarks marks);
  Task<std::vector<Resource>> MarkedImages();
  Task<std::vector<Resource>> MarkedFiles();

  AdapterEnvironment environment_;
  std::shared_ptr<const ProviderConfig> config_;
  log::Logger logger_;
  Traits traits_;
};

}  // namespace nodepool::driver::cloud
