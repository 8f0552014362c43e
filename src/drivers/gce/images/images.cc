#include "drivers/gce/images/images.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/backoff.h"
#include "async/deadline.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/images/marked_upload.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "drivers/gce/api/faults.h"
#include "drivers/gce/images/put_archive.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::Resource;
using driver::cloud::UploadMarks;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr Backoff::Settings kImportPauses{std::chrono::seconds(1), std::chrono::seconds(15), 1.5, 0.1};
constexpr int kMostMissing = 5;
constexpr Duration kImportLimit = std::chrono::hours(1);
constexpr const char* kFormat = "tar.gz";
constexpr const char* kImageKind = "image";
constexpr const char* kObjectKind = "object";
constexpr Duration kAbandoned = std::chrono::hours(24);

// An image of the project.
struct GceImage {
  std::string name;
  std::string status;                           // "PENDING", "READY", "FAILED"
  std::map<std::string, std::string> metadata;  // of its upload; empty: no Nodepool made it
};

std::string ImagePath(const std::string& name) { return "global/images/" + PercentEncoded(name); }

// The description has all of the metadata, labels only what may be one.
std::map<std::string, std::string> MetadataIn(const std::string& description) {
  std::map<std::string, std::string> metadata;
  boost::system::error_code error;
  json::value value = json::parse(description, error);
  if (error || !value.is_object()) return metadata;
  for (const auto& [key, member] : value.get_object()) metadata[key] = TextIn(value.get_object(), key);
  return metadata;
}

GceImage ReadImage(const json::object& entry) {
  return {TextIn(entry, "name"), TextIn(entry, "status"), MetadataIn(TextIn(entry, "description"))};
}

json::object ImageRequest(const GceCloud& cloud, const driver::ImageUploadParameters& upload,
                          const UploadMarks& marks) {
  const auto& image = dynamic_cast<const GceDiskImage&>(*upload.image);
  json::object description;
  json::object labels;
  const std::map<std::string, std::string> metadata = driver::cloud::TextMetadata(upload);
  for (const auto& [key, value] : metadata) description[key] = value;
  for (const auto& [key, value] : FittingLabels(metadata)) {
    if (labels.size() < kMostLabels) labels[key] = value;
  }
  json::object body;
  body["name"] = upload.name;
  if (IsResourceName(upload.image->name.str())) body["family"] = upload.image->name.str();
  json::object disk{
      {"source", fmt::format("https://storage.googleapis.com/{}/{}", *cloud.config->bucket, marks.key)}};
  body["rawDisk"] = std::move(disk);
  body["labels"] = std::move(labels);
  body["description"] = json::serialize(description);
  body["architecture"] = image.architecture;
  json::array features;
  for (const std::string& feature : image.guest_features) features.push_back(json::object{{"type", feature}});
  if (!features.empty()) body["guestOsFeatures"] = std::move(features);
  return body;
}

// None: there is no such image.
Task<std::optional<GceImage>> FindUploaded(Compute& compute, std::string name) {
  ComputeCall call{"images.get", ImagePath(name)};
  std::optional<json::object> found = co_await driver::cloud::api::IfFound(compute.Get(std::move(call)));
  if (!found) co_return std::nullopt;
  co_return ReadImage(*found);
}

// Those with a label of Nodepool's; with an attempt only those of its upload.
Task<std::vector<GceImage>> ListImages(Compute& compute, std::string attempt = "") {
  std::string filter = std::string("labels.") + driver::cloud::kUploadKey + ":*";
  if (!attempt.empty()) filter = std::string("labels.") + driver::cloud::kAttemptKey + "=" + attempt;
  ComputeCall call{"images.list", "global/images"};
  return compute.List<GceImage>(std::move(call), std::move(filter), &ReadImage);
}

// One that does not exist is success. Ends when the deletion has begun.
Task<> DeleteImageNamed(Compute& compute, std::string name) {
  ComputeCall call{"images.delete", ImagePath(name)};
  co_await driver::cloud::api::WasThere(compute.Delete(std::move(call)));
}

// Throws if the operation has failed.
Task<> CheckOperation(Compute& compute, std::string operation, std::string name) {
  Outcome<Operation> known = co_await Attempt(compute.ReadAgain("global", std::move(operation)));
  // Where it cannot be read the image decides.
  if (known && known->has_failed())
    throw Error(Verdict::kFail, fmt::format("image {} was not made: {}", name, known->message));
}

Task<> AwaitReady(GceCloud& cloud, std::string name, std::string operation) {
  Backoff pauses(kImportPauses, cloud.environment.random);
  for (int missing = 0; missing < kMostMissing;) {
    Duration pause = pauses.Next();
    co_await cloud.loop().SleepFor(pause);
    if (!operation.empty()) co_await CheckOperation(cloud.compute, operation, name);
    std::optional<GceImage> image = co_await FindUploaded(cloud.compute, name);
    if (!image) ++missing;
    if (image && image->status == "READY") co_return;
    if (image && image->status != "PENDING")
      throw Error(Verdict::kFail, fmt::format("image {} is {}", name, image->status));
  }
  throw Error(Verdict::kFail, fmt::format("image {} has vanished", name));
}

// Makes an image of an object and ends when machines can be made of it; an image that this upload has made
// already is it. Error(kFail): that will never be.
Task<> ImportImage(GceCloud& cloud, const driver::ImageUploadParameters& upload, const UploadMarks& marks) {
  ComputeCall call{"images.insert", "global/images"};
  json::object body = ImageRequest(cloud, upload, marks);
  Outcome<Operation> made = co_await Attempt(cloud.compute.Insert(std::move(call), body));
  if (!made && CodeOf(made.error()) == "alreadyExists") {
    std::optional<GceImage> known = co_await FindUploaded(cloud.compute, upload.name);
    if (!known || !marks.AreOn(known->metadata)) made.error().Rethrow();
  } else if (!made) {
    made.error().Rethrow();
  }
  std::string operation = made ? made->name : "";
  co_await AwaitReady(cloud, upload.name, std::move(operation));
}

void CheckUpload(const GceCloud& cloud, const driver::ImageUploadParameters& upload) {
  if (!cloud.storage)
    throw Error(Verdict::kInvalid, "uploads need object-storage with bucket-name in the provider");
  if (IsResourceName(upload.name)) return;
  // It would be refused after hours.
  throw Error(Verdict::kInvalid,
              fmt::format("Google permits no image of the name {}: a small letter, then up to 62 small "
                          "letters, digits and dashes; see image-name-format",
                          Excerpt(upload.name, 100)));
}

Task<std::string> MakeImage(GceCloud& cloud, const driver::ImageUploadParameters& upload,
                            const UploadMarks& marks) {
  auto file = co_await driver::cloud::OpenImageFile(cloud.environment.blocking_pool, upload.filename);
  auto sent = [&upload, size = file->size()](std::uint64_t bytes) {
    upload.report({"sending the file", static_cast<int>(std::min(bytes, size) * 100 / size)});
  };
  co_await PutArchive(cloud, file, marks.key, driver::cloud::TextMetadata(upload), sent);
  upload.report({"importing the file", 0});
  SteadyTime deadline = cloud.loop().SteadyNow() + cloud.config->import_timeout.value_or(kImportLimit);
  co_await WithDeadline(cloud.loop(), deadline, "the import of image " + upload.name,
                        ImportImage(cloud, upload, marks));
  cloud.logger.Info("Upload of image {} complete", upload.name);
  co_return upload.name;
}

// Everything that has the upload's marks, but not its image where it is to stay.
Task<> RemoveUnfinished(GceCloud& cloud, UploadMarks marks) {
  if (cloud.storage) co_await cloud.storage->Delete(marks.key);
  std::vector<GceImage> images = co_await ListImages(cloud.compute, marks.attempt);
  for (const GceImage& image : images) {
    if (marks.AreOn(image.metadata)) co_await DeleteImageNamed(cloud.compute, image.name);
  }
}

Task<std::vector<Resource>> MarkedImages(GceCloud& cloud) {
  std::vector<GceImage> images = co_await ListImages(cloud.compute);
  std::vector<Resource> resources;
  for (GceImage& image : images) {
    resources.push_back({kImageKind, std::move(image.name), std::move(image.metadata)});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedObjects(GceCloud& cloud) {
  std::vector<Resource> resources;
  for (const auto& [name, image] : cloud.config->diskimages) {
    std::vector<StoredObject> objects = co_await cloud.storage->List(name.str() + "-");
    for (StoredObject& object : objects) {
      bool is_old = object.created && cloud.loop().Now() - *object.created >= kAbandoned;
      if (!is_old || !driver::cloud::IsKeyOf(object.name, name)) continue;
      resources.push_back({kObjectKind, std::move(object.name), std::move(object.metadata)});
    }
  }
  co_return resources;
}

}  // namespace

Task<std::string> UploadImage(GceCloud& cloud, driver::ImageUploadParameters upload) {
  CheckUpload(cloud, upload);
  const UploadMarks marks = driver::cloud::MarksOf(upload, kFormat);
  auto make = [&] { return MakeImage(cloud, upload, marks); };
  auto remove = [&] { return RemoveUnfinished(cloud, marks); };
  Task<std::string> making =
      driver::cloud::UploadMarked(cloud.loop(), cloud.logger, upload, marks, make, remove);
  std::string name = co_await std::move(making);
  std::string left = "Object " + marks.key + " is left and will be found as leaked";
  co_await driver::cloud::RemoveQuietly(cloud.loop(), cloud.logger, std::move(left),
                                        cloud.storage->Delete(marks.key));
  co_return name;
}

Task<> DeleteImage(GceCloud& cloud, std::string external_id) {
  const std::string provider = cloud.config->name.str();
  std::optional<UploadMarks> marks = driver::cloud::ReadUnfinishedId(external_id, provider);
  if (marks) {
    co_await RemoveUnfinished(cloud, std::move(*marks));
    co_return;
  }
  std::optional<GceImage> image = co_await FindUploaded(cloud.compute, external_id);
  if (!image) co_return;
  bool is_own = driver::cloud::OwnerOf(image->metadata).provider == provider;
  if (is_own) co_await DeleteImageNamed(cloud.compute, image->name);
  if (!is_own) cloud.logger.Warning("Image {} is not of provider {} and stays", external_id, provider);
}

Task<> AppendMarkedImages(GceCloud& cloud, std::vector<Resource>& resources) {
  const ProviderName& provider = cloud.config->name;
  co_await driver::cloud::AppendListed(cloud.logger, provider, "images", MarkedImages(cloud), resources);
  if (!cloud.storage) co_return;
  co_await driver::cloud::AppendListed(cloud.logger, provider, "objects", MarkedObjects(cloud), resources);
}

Task<> DeleteMarkedImage(GceCloud& cloud, Resource resource) {
  if (resource.type == kObjectKind) {
    // Its key contains the attempt's mark.
    if (cloud.storage) co_await cloud.storage->Delete(std::move(resource.id));
    co_return;
  }
  std::optional<GceImage> image = co_await FindUploaded(cloud.compute, resource.id);
  if (image && image->metadata == resource.metadata)
    co_await DeleteImageNamed(cloud.compute, std::move(resource.id));
}

Task<std::vector<driver::ListedImage>> ListUploadedImages(GceCloud& cloud) {
  std::vector<GceImage> images = co_await ListImages(cloud.compute);
  std::vector<driver::ListedImage> listed;
  for (GceImage& image : images) listed.push_back({image.name, image.name, std::move(image.metadata)});
  co_return listed;
}

}  // namespace nodepool::drivers::gce
