#include "driver/cloud/images/staged_images.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/deadline.h"
#include "base/text.h"
#include "driver/cloud/images/marked_upload.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Backoff::Settings kImportPauses{std::chrono::seconds(1), std::chrono::seconds(15), 1.5, 0.1};
constexpr int kMostMissing = 5;  // readings without the image
constexpr Duration kAbandoned = std::chrono::hours(24);
constexpr const char* kImageType = "image";

std::string Capitalized(std::string text) {
  if (!text.empty()) text.replace(0, 1, Upper(text.substr(0, 1)));
  return text;
}

}  // namespace

Task<std::string> StagedImages::Upload(ImageUploadParameters upload) {
  Check(upload);
  const UploadMarks marks = MarksOf(upload, traits_.format);
  auto make = [&] { return PutAndImport(upload, marks); };
  auto remove = [&] { return RemoveUnfinished(marks); };
  Task<std::string> making = UploadMarked(environment_.loop, logger_, upload, marks, make, remove);
  std::string id = co_await std::move(making);
  std::string left =
      fmt::format("{} {} is left and will be found as leaked", Capitalized(traits_.file_type), marks.key);
  co_await RemoveQuietly(environment_.loop, logger_, std::move(left), RemoveFile(marks.key));
  co_return id;
}

Task<std::string> StagedImages::PutAndImport(const ImageUploadParameters& upload, const UploadMarks& marks) {
  std::shared_ptr<const SparseFile> file =
      co_await OpenImageFile(environment_.blocking_pool, upload.filename);
  auto sent = [&upload, size = file->size()](std::uint64_t bytes) {
    upload.report({"sending the file", static_cast<int>(std::min(bytes, size) * 100 / size)});
  };
  co_await Put(file, marks.key, TextMetadata(upload), sent);
  upload.report({"importing the file", 0});
  SteadyTime deadline = environment_.loop.SteadyNow() + traits_.import_limit;
  std::string id = co_await WithDeadline(environment_.loop, deadline, "the import of image " + upload.name,
                                         ImportAndWait(upload, marks));
  logger_.Info("Upload of image {} complete", upload.name);
  co_return id;
}

// An image that this upload has made already, by a call whose answer was lost, is it.
Task<std::string> StagedImages::ImportAndWait(const ImageUploadParameters& upload, const UploadMarks& marks) {
  Outcome<Begun> begun = co_await Attempt(Import(upload, marks));
  std::string id = begun ? begun->id : NamesakeOf(upload, begun.error());
  if (!begun && id.empty()) begun.error().Rethrow();
  if (!begun) {
    std::optional<UploadedImage> known = co_await Find(id);
    if (!known || !marks.AreOn(known->metadata)) begun.error().Rethrow();
  }
  Begun waited{id, begun ? begun->operation : ""};
  co_await AwaitReady(std::move(waited));
  co_return id;
}

Task<> StagedImages::AwaitReady(Begun begun) {
  using Progress = UploadedImage::Progress;
  Backoff pauses(kImportPauses, environment_.random);
  for (int missing = 0; missing < kMostMissing;) {
    Duration pause = pauses.Next();
    co_await environment_.loop.SleepFor(pause);
    if (!begun.operation.empty()) co_await CheckOperation(begun);
    std::optional<UploadedImage> image = co_await Find(begun.id);
    if (!image) ++missing;
    if (image && image->progress == Progress::kReady) co_return;
    if (image && image->progress == Progress::kFailed)
      throw Error(Verdict::kFail, fmt::format("image {} is {}", begun.id, image->state));
  }
  throw Error(Verdict::kFail, fmt::format("image {} has vanished", begun.id));
}

Task<> StagedImages::RemoveUnfinished(UploadMarks marks) {
  if (HasFiles()) co_await RemoveFile(marks.key);
  std::vector<UploadedImage> images = co_await ListUploaded(marks.attempt);
  for (const UploadedImage& image : images) {
    if (marks.AreOn(image.metadata)) co_await Remove(image.id);
  }
}

Task<> StagedImages::Delete(std::string external_id) {
  const std::string provider = config_->name.str();
  std::optional<UploadMarks> marks = ReadUnfinishedId(external_id, provider);
  if (marks) {
    co_await RemoveUnfinished(std::move(*marks));
    co_return;
  }
  std::optional<UploadedImage> image = co_await Find(external_id);
  if (!image) co_return;
  bool is_own = OwnerOf(image->metadata).provider == provider;
  if (is_own) co_await Remove(image->id);
  if (!is_own) logger_.Warning("Image {} is not of provider {} and stays", external_id, provider);
}

Task<std::vector<ListedImage>> StagedImages::List() {
  std::vector<UploadedImage> images = co_await ListUploaded("");
  std::vector<ListedImage> listed;
  for (UploadedImage& image : images)
    listed.push_back({std::move(image.name), std::move(image.id), std::move(image.metadata)});
  co_return listed;
}

Task<std::vector<Resource>> StagedImages::MarkedImages() {
  std::vector<UploadedImage> images = co_await ListUploaded("");
  std::vector<Resource> resources;
  for (UploadedImage& image : images)
    resources.push_back({kImageType, std::move(image.id), std::move(image.metadata)});
  co_return resources;
}

Task<std::vector<Resource>> StagedImages::MarkedFiles() {
  std::vector<Resource> resources;
  for (const auto& [name, image] : config_->diskimages) {
    std::vector<StagedFile> files = co_await ListFiles(name.str() + "-");
    for (StagedFile& file : files) {
      bool is_old = file.made && environment_.loop.Now() - *file.made >= kAbandoned;
      if (!is_old || !IsKeyOf(file.key, name)) continue;
      resources.push_back({traits_.file_type, std::move(file.key), std::move(file.metadata)});
    }
  }
  co_return resources;
}

Task<> StagedImages::AppendMarked(std::vector<Resource>& resources) {
  co_await AppendListed(logger_, config_->name, "images", MarkedImages(), resources);
  if (!HasFiles()) co_return;
  const std::string files = traits_.file_type + "s";
  co_await AppendListed(logger_, config_->name, files.c_str(), MarkedFiles(), resources);
}

Task<> StagedImages::DeleteMarked(Resource resource) {
  if (resource.type == traits_.file_type) {
    // Its key contains the attempt's mark.
    if (HasFiles()) co_await RemoveFile(std::move(resource.id));
    co_return;
  }
  std::optional<UploadedImage> image = co_await Find(resource.id);
  if (image && image->metadata == resource.metadata) co_await Remove(std::move(resource.id));
}

}  // namespace nodepool::driver::cloud
