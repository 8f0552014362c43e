#include "driver/cloud/images/staged_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <string_view>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/text.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"

namespace nodepool::driver::cloud {

namespace {

constexpr std::string_view kUnfinished = "unfinished:";
constexpr std::size_t kMarkInKey = 12;

std::string ValueText(const boost::json::value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get_bool() ? "True" : "False";
  return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
}

}  // namespace

bool UploadMarks::AreOn(const std::map<std::string, std::string>& metadata) const {
  return FindOrEmpty(metadata, kProviderKey) == provider && FindOrEmpty(metadata, kBuildKey) == build &&
         FindOrEmpty(metadata, kUploadKey) == upload && FindOrEmpty(metadata, kAttemptKey) == attempt;
}

std::string UploadMarks::Token(const std::string& call) const {
  return Sha256Hex(call + "\n" + provider + "\n" + build + "\n" + upload + "\n" + attempt);
}

std::map<std::string, std::string> TextMetadata(const ImageUploadParameters& upload) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : upload.metadata) metadata[std::string(key)] = ValueText(value);
  return metadata;
}

UploadMarks MarksOf(const ImageUploadParameters& upload, const std::string& format) {
  std::map<std::string, std::string> metadata = TextMetadata(upload);
  UploadMarks marks;
  marks.provider = FindOrEmpty(metadata, kProviderKey);
  marks.build = FindOrEmpty(metadata, kBuildKey);
  marks.upload = FindOrEmpty(metadata, kUploadKey);
  marks.attempt = FindOrEmpty(metadata, kAttemptKey);
  marks.key = fmt::format("{}-{}-{}.{}", upload.image->name, marks.upload,
                          marks.attempt.substr(0, kMarkInKey), format);
  if (marks.provider.empty() || marks.build.empty() || marks.upload.empty() || marks.attempt.empty()) {
    throw Error(Verdict::kInvalid, "the upload has no provider, build, upload and attempt in its metadata");
  }
  return marks;
}

bool IsKeyOf(const std::string& key, const ImageName& image) {
  if (!key.starts_with(image.str() + "-")) return false;
  std::string_view rest = std::string_view(key).substr(image.str().size() + 1);
  auto take = [&rest](std::string_view characters) {
    std::size_t length = std::min(rest.find_first_not_of(characters), rest.size());
    rest.remove_prefix(length);
    return length > 0;
  };
  if (!take("0123456789")) return false;
  if (rest.starts_with('-')) {
    rest.remove_prefix(1);
    if (!take("0123456789abcdef")) return false;
  }
  bool is_one_word = rest.find_first_of("./", 1) == std::string_view::npos || rest == ".tar.gz";
  return rest.size() > 1 && rest.front() == '.' && is_one_word;
}

std::string UnfinishedId(const UploadMarks& marks) {
  return fmt::format("{}{}:{}:{}:{}", kUnfinished, marks.build, marks.upload, marks.attempt, marks.key);
}

std::optional<UploadMarks> ReadUnfinishedId(const std::string& external_id, const std::string& provider) {
  if (!external_id.starts_with(kUnfinished)) return std::nullopt;
  UploadMarks marks;
  marks.provider = provider;
  std::size_t begin = kUnfinished.size();
  for (std::string UploadMarks::*part : {&UploadMarks::build, &UploadMarks::upload, &UploadMarks::attempt}) {
    std::size_t end = external_id.find(':', begin);
    if (end == std::string::npos || end == begin) return std::nullopt;
    marks.*part = external_id.substr(begin, end - begin);
    begin = end + 1;
  }
  marks.key = external_id.substr(begin);
  return marks.key.empty() ? std::nullopt : std::optional(std::move(marks));
}

namespace {

constexpr Duration kRemoveLimit = std::chrono::seconds(30);

}  // namespace

Task<> RemoveQuietly(Loop& loop, log::Logger logger, std::string left, Task<> removal) {
  SteadyTime deadline = loop.SteadyNow() + kRemoveLimit;
  Outcome<> removed = co_await Attempt(WithDeadline(loop, deadline, "the removal", std::move(removal)));
  if (!removed) logger.Error("{}: {}", left, removed.error().message());
}

Task<std::string> UploadMarked(Loop& loop, log::Logger logger, const ImageUploadParameters& upload,
                               UploadMarks marks, std::function<Task<std::string>()> make,
                               std::function<Task<>()> remove) {
  Task<> announcement = upload.announce(UnfinishedId(marks));
  co_await std::move(announcement);
  std::string left =
      "Something of the failed upload of " + marks.key + " is left and will be found as leaked";
  auto clean_up = [&](const Failure&) { return RemoveQuietly(loop, logger, left, remove()); };
  Task<std::string> making = make();
  std::string id = co_await OnFailure(std::move(making), clean_up);
  co_return id;
}

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
