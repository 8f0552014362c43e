#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "async/event.h"
#include "async/loop.h"
#include "base/log/logging.h"
#include "builder/context.h"
#include "builder/image_providers.h"
#include "builder/retries.h"
#include "builder/worker.h"
#include "driver/driver.h"

namespace nodepool::builder {

// "sending the file, 40 %"
std::string ToText(const driver::UploadProgress& progress);

// Writes how far an upload has come where operators see it: when it has changed by a percent or is at another
// step, and at most every ten seconds.
class UploadProgressNotes {
 public:
  using Write = std::function<Task<>(std::string text)>;

  // The loop outlives it.
  UploadProgressNotes(Loop& loop, log::Logger logger, Write write)
      : loop_(loop), logger_(std::move(logger)), write_(std::move(write)) {}

  // May be called as often as there is news.
  void Report(const driver::UploadProgress& progress);

  // Writes until it is cancelled. A write that fails is repeated with the next news only.
  Task<> Run();

 private:
  Loop& loop_;
  log::Logger logger_;
  Write write_;
  std::string text_;
  Event has_changed_{"progress of an upload"};
};

// Uploads the current build of each image to every provider that lists it, from the files on this host
// (builder.md 10), a few at a time.
class UploadWorker : public Worker {
 public:
  using Target = std::pair<ImageName, ProviderName>;

  UploadWorker(Context& context, ImageProviders& providers);

  const std::set<Target>& uploading() const { return uploading_; }
  // Whether files of the build are being read.
  bool IsReading(const store::BuildKey& build) const { return reading_.contains(build); }

 private:
  // What to upload, by which provider, and the result.
  struct Job {
    store::StoredBuild build;
    std::shared_ptr<driver::ImageStore> provider;
    std::string filename;
    std::map<std::string, std::string> image_metadata;
    std::optional<config::ImageValidation> validation;
    zk::HeldLock lock;
    std::string name;                               // in the cloud
    std::string external_id;                        // empty until the upload and its tests have succeeded
    std::string error = "the builder was stopped";  // of an upload that has not succeeded
    // One write of the record at a time, while it is uploading.
    std::shared_ptr<Gate> record_gate = std::make_shared<Gate>(1);
  };

  SteadyTime Consider() override;
  std::string Circumstances(const store::BuildKey& build, const ProviderName& provider) const;
  Task<> Upload(Target target, BuildId build);
  Task<bool> UploadOnce(store::BuildKey build, ProviderName provider);
  Task<bool> UploadLocked(store::BuildKey build, ProviderName provider, zk::HeldLock lock);
  Task<bool> HasReadyUpload(store::BuildKey build, ProviderName provider);
  Task<bool> Perform(Job job);
  // Sends the image, and notes why it failed.
  Task<> TrySend(Job& job, store::StoredUpload& upload);
  // Uploads the file; meanwhile the record says how far it has come.
  Task<std::string> SendFile(Job& job, store::StoredUpload& upload, driver::ImageUploadParameters parameters);
  Task<> NoteProgress(const Job& job, store::StoredUpload& upload, std::string progress);
  Task<store::StoredUpload> Begin(const Job& job);
  Task<> Send(Job& job, store::StoredUpload& upload);
  // Writes to the record which image to delete if this builder dies.
  Task<> NoteImage(const Job& job, store::StoredUpload& upload, std::string external_id);
  // Throws why the image that was sent must not be used.
  Task<> Test(const Job& job, store::StoredUpload& upload, std::string external_id);
  Task<> Validate(const Job& job, store::StoredUpload& upload, std::string external_id);
  Task<> RunHook(const Job& job, store::StoredUpload& upload, std::string external_id);
  Task<> Finish(const Job& job, store::StoredUpload& upload);
  Task<> Record(const Job& job, store::StoredUpload& upload);
  Task<> DeleteQuietly(std::shared_ptr<driver::ImageStore> provider, std::string external_id);

  ImageProviders& providers_;
  Retries<Target> retries_;
  std::set<Target> uploading_;
  int validating_ = 0;  // of those
  std::multiset<store::BuildKey> reading_;
};

// `format` with {image_name}, {upload_id} and {timestamp} filled in. Throws Error(kInvalid) for any other
// name in braces.
std::string ImageNameInCloud(const std::string& format, const ImageName& image, const UploadId& upload,
                             WallTime now);

}  // namespace nodepool::builder
