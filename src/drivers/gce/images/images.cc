#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/json_fields.h"
#include "base/tar_gz_stream.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/images/staged_images.h"
#include "driver/cloud/metadata.h"
#include "drivers/gce/api/services.h"
#include "drivers/gce/gce_driver.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::ImageUploadParameters;
using driver::cloud::StagedFile;
using driver::cloud::UploadedImage;
using driver::cloud::UploadMarks;

namespace {

// A disk is imported as disk.raw in an archive, a whole number of these long.
constexpr std::uint64_t kDiskUnit = std::uint64_t{1} << 30;

std::string ImagePath(const std::string& name) {
  return "global/images/" + driver::cloud::api::PercentEncoded(name);
}

// The description has all of the metadata, labels only what may be one.
UploadedImage ReadImage(const json::object& entry) {
  json::value description = ParsedJson(TextIn(entry, "description"));
  std::string name = TextIn(entry, "name");
  UploadedImage image{name, name, TextsIn(description.if_object()), TextIn(entry, "status")};
  if (image.state == "READY") image.progress = UploadedImage::Progress::kReady;
  if (image.state != "READY" && image.state != "PENDING") image.progress = UploadedImage::Progress::kFailed;
  return image;
}

json::object ImageRequest(const GceConfig& config, const ImageUploadParameters& upload,
                          const UploadMarks& marks) {
  const auto& image = driver::cloud::As<GceDiskImage>(*upload.image);
  const std::map<std::string, std::string> metadata = driver::cloud::TextMetadata(upload);
  json::object description = ObjectOf(metadata);
  json::object labels;
  for (const auto& [key, value] : FittingLabels(metadata)) {
    if (labels.size() < kMostLabels) labels[key] = value;
  }
  json::object body;
  body["name"] = upload.name;
  if (kResourceRule.Permits(upload.image->name.str())) body["family"] = upload.image->name.str();
  json::object disk{
      {"source", fmt::format("https://storage.googleapis.com/{}/{}", *config.bucket, marks.key)}};
  body["rawDisk"] = std::move(disk);
  body["labels"] = std::move(labels);
  body["description"] = json::serialize(description);
  body["architecture"] = image.architecture;
  json::array features;
  for (const std::string& feature : image.guest_features) features.push_back(json::object{{"type", feature}});
  if (!features.empty()) body["guestOsFeatures"] = std::move(features);
  return body;
}

// The project's images, made of objects of the bucket. Their ids are their names.
class GceImages : public driver::cloud::StagedImages {
 public:
  explicit GceImages(GceCloud& cloud)
      : StagedImages(cloud.environment, cloud.config, cloud.logger, TraitsFor(*cloud.config)),
        cloud_(cloud) {}

 private:
  static Traits TraitsFor(const GceConfig& config) {
    Traits traits{"tar.gz", "object"};
    traits.import_limit = config.import_timeout.value_or(traits.import_limit);
    return traits;
  }

  void Check(const ImageUploadParameters& upload) const override {
    if (!HasFiles())
      throw Error(Verdict::kInvalid, "uploads need object-storage with bucket-name in the provider");
    if (kResourceRule.Permits(upload.name)) return;
    // It would be refused after hours.
    throw Error(Verdict::kInvalid,
                fmt::format("Google permits no image of the name {}: a small letter, then up to 62 small "
                            "letters, digits and dashes; see image-name-format",
                            Excerpt(upload.name, 100)));
  }

  bool HasFiles() const override { return cloud_.storage.has_value(); }
  Task<> Put(std::shared_ptr<const SparseFile> file, std::string key,
             std::map<std::string, std::string> metadata, std::function<void(std::uint64_t)> sent) override {
    auto read = [file](std::uint64_t place, std::size_t length) {
      return place < file->size() ? file->Read(place, length) : "";
    };
    std::uint64_t size = (file->size() + kDiskUnit - 1) / kDiskUnit * kDiskUnit;
    auto open = [read, size] { return std::make_shared<TarGzStream>("disk.raw", size, read); };
    return driver::cloud::PutResumable(environment(), cloud_.logger, *cloud_.storage,
                                       {"Cloud Storage", std::move(key), std::move(metadata), open},
                                       std::move(sent));
  }
  Task<std::vector<StagedFile>> ListFiles(std::string prefix) override {
    return cloud_.storage->List(std::move(prefix));
  }
  Task<> RemoveFile(std::string key) override { return cloud_.storage->Delete(std::move(key)); }

  Task<Begun> Import(const ImageUploadParameters& upload, const UploadMarks& marks) override {
    ComputeCall call{"images.insert", "global/images"};
    json::object body = ImageRequest(*cloud_.config, upload, marks);
    Operation made = co_await cloud_.compute.Change("POST", std::move(call), std::move(body));
    co_return Begun{upload.name, made.name};
  }
  std::string NamesakeOf(const ImageUploadParameters& upload, const Failure& refusal) const override {
    return CodeOf(refusal) == "alreadyExists" ? upload.name : "";
  }
  // Where it cannot be read the image decides.
  Task<> CheckOperation(Begun begun) override {
    Outcome<Operation> known = co_await Attempt(cloud_.compute.ReadAgain("global", begun.operation));
    if (known && known->has_failed())
      throw Error(Verdict::kFail, fmt::format("image {} was not made: {}", begun.id, known->message));
  }

  Task<std::optional<UploadedImage>> Find(std::string id) override {
    ComputeCall call{"images.get", ImagePath(id)};
    std::optional<json::object> found =
        co_await driver::cloud::api::IfFound(cloud_.compute.Get(std::move(call)));
    if (!found) co_return std::nullopt;
    co_return ReadImage(*found);
  }
  Task<std::vector<UploadedImage>> ListUploaded(std::string attempt) override {
    std::string filter = std::string("labels.") + driver::cloud::kUploadKey + ":*";
    if (!attempt.empty()) filter = std::string("labels.") + driver::cloud::kAttemptKey + "=" + attempt;
    ComputeCall call{"images.list", "global/images"};
    return cloud_.compute.List<UploadedImage>(std::move(call), filter, &ReadImage);
  }
  Task<> Remove(std::string id) override {
    ComputeCall call{"images.delete", ImagePath(id)};
    co_await driver::cloud::api::WasThere(cloud_.compute.Change("DELETE", std::move(call)));
  }

  GceCloud& cloud_;
};

}  // namespace

std::unique_ptr<driver::cloud::StagedImages> MakeImages(GceCloud& cloud) {
  return std::make_unique<GceImages>(cloud);
}

}  // namespace nodepool::drivers::gce
