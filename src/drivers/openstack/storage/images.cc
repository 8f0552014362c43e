#include "drivers/openstack/storage/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <set>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/openstack/api/paging.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::ImageUploadParameters;
using driver::ListedImage;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr Duration kPollInterval = std::chrono::seconds(2);
constexpr Duration kRemoveLimit = std::chrono::seconds(30);
constexpr const char* kMd5 = "owner_specified.openstack.md5";
constexpr const char* kSha256 = "owner_specified.openstack.sha256";
constexpr const char* kFailedImport = "os_glance_failed_import";
constexpr const char* kObject = "owner_specified.openstack.object";

// States of an image that is going to become usable.
constexpr std::array<std::string_view, 4> kUnderWay = {"queued", "saving", "uploading", "importing"};

json::value PropertyValue(std::string_view key, const json::value& value) {
  constexpr std::array kNumbers = {"min_disk", "min_ram", "size", "virtual_size"};
  constexpr std::array kAsTheyAre = {"is_protected", "protected", "tags"};
  if (value.is_null() || std::ranges::find(kAsTheyAre, key) != kAsTheyAre.end()) return value;
  std::string text = value.is_string() ? std::string(value.as_string()) : json::serialize(value);
  if (std::ranges::find(kNumbers, key) != kNumbers.end()) return std::strtoll(text.c_str(), nullptr, 10);
  return json::value(text);
}

struct Listed {
  std::string id;
  std::string status;
  std::string md5;
  std::string sha256;
};

Listed ReadListed(const json::object& entry) {
  Listed image{TextIn(entry, "id"), TextIn(entry, "status"), TextIn(entry, kMd5), TextIn(entry, kSha256)};
  if (image.md5.empty()) image.md5 = TextIn(entry, "owner_specified.shade.md5");
  if (image.sha256.empty()) image.sha256 = TextIn(entry, "owner_specified.shade.sha256");
  return image;
}

ListedImage ReadOwned(const json::object& entry) {
  ListedImage image{TextIn(entry, "name"), TextIn(entry, "id"), {}};
  for (const auto& [key, value] : entry) {
    if (key.starts_with("nodepool_")) image.metadata[std::string(key)] = TextIn(entry, key);
  }
  return image;
}

ApiCall ImageCall(std::string method, std::string path) {
  ApiCall call;
  call.service = Service::kImage;
  call.method = std::move(method);
  call.path = std::move(path);
  return call;
}

// The id of an active image of that name with the same contents, or empty.
Task<std::string> FindTwin(Session& session, const ImageUploadParameters& upload) {
  if (!upload.md5 && !upload.sha256) co_return "";
  ApiCall call = ImageCall("GET", "/images");
  call.query = "name=" + PercentEncoded(upload.name);
  std::vector<Listed> images = co_await List(session, std::move(call), "images", &ReadListed);
  std::erase_if(images, [&upload](const Listed& image) {
    bool is_same =
        (!upload.md5 || image.md5 == *upload.md5) && (!upload.sha256 || image.sha256 == *upload.sha256);
    return !is_same || image.status != "active";
  });
  if (images.size() > 1) {
    throw Error(Verdict::kConflict, fmt::format("there are {} images {} with the same contents in cloud {}",
                                                images.size(), upload.name, session.cloud().name));
  }
  co_return images.empty() ? "" : images.front().id;
}

Task<std::string> MakeRecord(Session& session, const ImageUploadParameters& upload) {
  ApiCall call = ImageCall("POST", "/images");
  call.body = ImageProperties(upload, session.cloud());
  ApiReply reply = co_await session.Call(std::move(call));
  std::string id = reply.body.is_object() ? TextIn(reply.body.as_object(), "id") : "";
  if (id.empty()) throw Error(Verdict::kRetry, "the cloud accepted an image and returned no id");
  co_return id;
}

Task<> SendFile(Session& session, const ImageUploadParameters& upload, std::string path) {
  ApiCall call = ImageCall("PUT", std::move(path));
  auto report = [&upload](std::uint64_t sent, std::uint64_t size) {
    if (size > 0) upload.report({"sending the file", static_cast<int>(sent * 100 / size)});
  };
  call.upload = net::HttpUpload{upload.filename, report};
  call.upload_limit = upload.timeout;
  co_await session.Call(std::move(call));
}

Task<> WaitActive(Session& session, std::string id) {
  while (true) {
    ApiReply reply = co_await session.Call(ImageCall("GET", "/images/" + id));
    std::string status = reply.body.is_object() ? TextIn(reply.body.as_object(), "status") : "";
    if (status == "active") co_return;
    // The service does not change such an image's status, and does not try again.
    std::string failed = reply.body.is_object() ? TextIn(reply.body.as_object(), kFailedImport) : "";
    if (!failed.empty()) throw Error(Verdict::kFail, fmt::format("the import of image {} failed", id));
    if (std::ranges::find(kUnderWay, status) == kUnderWay.end()) {
      throw Error(Verdict::kFail, fmt::format("image {} went into status {}", id, Excerpt(status)));
    }
    co_await session.loop().SleepFor(kPollInterval);
  }
}

Task<> Fill(Session& session, const ImageUploadParameters& upload, std::string id) {
  if (session.cloud().imports_images) {
    co_await SendFile(session, upload, "/images/" + id + "/stage");
    ApiCall import = ImageCall("POST", "/images/" + id + "/import");
    import.body = json::object{{"method", {{"name", "glance-direct"}}}};
    co_await session.Call(std::move(import));
  } else {
    co_await SendFile(session, upload, "/images/" + id + "/file");
  }
  co_await WaitActive(session, id);
}

// `id` is empty until the cloud has given one.
Task<> Import(Session& session, const ImageUploadParameters& upload, std::string& id) {
  id = co_await MakeRecord(session, upload);
  co_await upload.announce(id);
  co_await Fill(session, upload, id);
}

Task<> RemoveQuietly(Session& session, std::string id) {
  if (id.empty()) co_return;
  SteadyTime deadline = session.loop().SteadyNow() + kRemoveLimit;
  Task<bool> removal = WithDeadline(session.loop(), deadline, "removing the image", DeleteImage(session, id));
  Outcome<bool> removed = co_await Attempt(std::move(removal));
  if (removed) co_return;
  log::Logger("nodepool.OpenStackAdapter")
      .Error("Image {}, whose upload failed, is left in cloud {}: {}", id, session.cloud().name,
             removed.error().message());
}

}  // namespace

json::object ImageProperties(const ImageUploadParameters& upload, const CloudConfig& cloud) {
  json::object properties;
  for (const auto& [key, value] : cloud.disable_vendor_agent) properties[key] = PropertyValue(key, value);
  for (const auto& [key, value] : upload.metadata) {
    properties[key == "is_protected" ? "protected" : key] = PropertyValue(key, value);
  }
  properties["name"] = upload.name;
  properties["disk_format"] = upload.format;
  properties["container_format"] = "bare";
  properties["visibility"] = "private";
  properties[kMd5] = upload.md5.value_or("");
  properties[kSha256] = upload.sha256.value_or("");
  properties[kObject] = "images/" + upload.name;
  return properties;
}

Task<std::string> UploadImage(Session& session, ImageUploadParameters upload) {
  std::string twin = co_await FindTwin(session, upload);
  if (!twin.empty()) co_return twin;
  std::string id;
  auto remove = [&](const Failure&) { return RemoveQuietly(session, id); };
  co_await OnFailure(Import(session, upload, id), remove);
  co_return id;
}

Task<bool> DeleteImage(Session& session, std::string id) {
  return session.Delete(Service::kImage, "/images/" + id);
}

Task<std::vector<ListedImage>> ListOwnedImages(Session& session) {
  std::vector<ListedImage> images = co_await List(session, ImageCall("GET", "/images"), "images", &ReadOwned);
  std::erase_if(images,
                [](const ListedImage& image) { return !image.metadata.contains("nodepool_build_id"); });
  co_return images;
}

Task<std::vector<ListedImage>> ListImagesOf(Session& session, std::string provider) {
  std::string project = co_await session.ProjectId();
  ApiCall call = ImageCall("GET", "/images");
  call.query = "nodepool_provider_name=" + PercentEncoded(provider);
  if (!project.empty()) call.query += "&owner=" + PercentEncoded(project);
  std::vector<ListedImage> images = co_await List(session, std::move(call), "images", &ReadOwned);
  co_return images;
}

}  // namespace nodepool::drivers::openstack
