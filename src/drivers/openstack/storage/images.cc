#include "drivers/openstack/storage/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <set>

#include "async/backoff.h"
#include "async/task.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/images/staged_images.h"
#include "drivers/openstack/api/cloud.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::ImageUploadParameters;
using driver::ListedImage;
using driver::Readiness;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr Duration kFresh = std::chrono::seconds(5);
constexpr Backoff::Settings kListingPauses{kFresh, std::chrono::seconds(300), 2.0, 0.0};

}  // namespace

CloudImages::CloudImages(Session& session, TaskGroup& tasks, Random& random, std::set<std::string> names,
                         std::function<void()> refreshed)
    : session_(session),
      tasks_(tasks),
      random_(random),
      names_(std::move(names)),
      refreshed_(std::move(refreshed)) {}

const CloudImages::Finding* CloudImages::Known(const std::string& name) const {
  auto found = findings_.find(name);
  if (found == findings_.end()) return nullptr;
  const Finding& finding = found->second;
  bool is_old = finding.is_doubted || tasks_.loop().SteadyNow() - finding.checked >= kFresh;
  return finding.id.empty() && is_old ? nullptr : &finding;
}

std::vector<std::string> CloudImages::Unknown() const {
  std::vector<std::string> unknown;
  std::ranges::copy_if(names_, std::back_inserter(unknown),
                       [this](const std::string& name) { return Known(name) == nullptr; });
  return unknown;
}

std::vector<std::string> CloudImages::Missing() const {
  std::vector<std::string> missing;
  std::ranges::copy_if(names_, std::back_inserter(missing), [this](const std::string& name) {
    auto found = findings_.find(name);
    return found == findings_.end() || found->second.id.empty();
  });
  return missing;
}

Task<std::string> CloudImages::Id(std::string name) {
  names_.insert(name);
  const Finding* finding = Known(name);
  while (finding == nullptr) {
    if (is_refreshing_) {
      co_await refreshed_once_.Wait();
    } else {
      co_await RefreshOnce();
    }
    finding = Known(name);
  }
  if (finding->id.empty()) throw Error(Verdict::kInvalid, finding->problem);
  co_return finding->id;
}

Readiness CloudImages::ReadinessOf(const std::string& name) {
  if (const Finding* finding = Known(name)) {
    return finding->id.empty() ? Readiness::kNotReady : Readiness::kReady;
  }
  names_.insert(name);
  SteadyTime now = tasks_.loop().SteadyNow();
  if (!is_refreshing_ && (!last_refresh_ || now - *last_refresh_ >= kFresh)) {
    last_refresh_ = now;
    tasks_.Spawn("find images", Refresh());
  }
  return Readiness::kUnknown;
}

// The answer of a refresh that is under way may be older than the question.
Task<> CloudImages::LookAgain() {
  while (is_refreshing_) co_await refreshed_once_.Wait();
  for (auto& [name, finding] : findings_) finding.is_doubted = true;
  co_await RefreshOnce();
}

void CloudImages::Clear() {
  findings_.clear();
  ++generation_;
  last_refresh_.reset();
}

Task<> CloudImages::Refresh() {
  Outcome<> refreshed = co_await Attempt(RefreshOnce());
  std::string failure = refreshed ? "" : refreshed.error().message();
  bool is_new = std::exchange(last_failure_, failure) != failure;
  if (is_new && !failure.empty()) {
    logger_.Error("Images of cloud {} could not be listed; trying again later: {}", session_.cloud().name,
                  failure);
  }
}

// The only place that reads images; one call at a time.
Task<> CloudImages::RefreshOnce() {
  while (is_refreshing_) co_await refreshed_once_.Wait();
  std::vector<std::string> names = Unknown();
  if (names.empty()) co_return;
  WatchMissing();
  is_refreshing_ = true;
  ScopeExit end([this] {
    is_refreshing_ = false;
    refreshed_once_.NotifyAll();
  });
  last_refresh_ = tasks_.loop().SteadyNow();
  std::uint64_t generation = generation_;
  std::vector<std::string> wanted = names;
  std::map<std::string, std::vector<std::string>> found =
      co_await FindActiveImages(session_, std::move(wanted));
  if (generation != generation_) co_return;
  for (const std::string& name : names) Note(name, found[name]);
  WatchMissing();
  refreshed_();
}

void CloudImages::Note(const std::string& name, const std::vector<std::string>& ids) {
  Finding& finding = findings_[name];
  bool was_missing = !finding.problem.empty();
  finding.checked = tasks_.loop().SteadyNow();
  finding.is_doubted = false;
  finding.id = ids.size() == 1 ? ids.front() : "";
  finding.problem.clear();
  const std::string& cloud = session_.cloud().name;
  if (ids.empty()) finding.problem = "cloud " + cloud + " has no active image " + Excerpt(name);
  if (ids.size() > 1)
    finding.problem = "Multiple matches found for image " + Excerpt(name) + " in cloud " + cloud;
  if (!was_missing && !finding.problem.empty())
    logger_.Warning("{}; its labels are not available until there is one", finding.problem);
  if (was_missing && !finding.id.empty()) logger_.Info("Cloud {} has image {} now", cloud, Excerpt(name));
}

// Newly missing images are checked soon, however long the pauses of the others are by now.
void CloudImages::WatchMissing() {
  std::vector<std::string> missing = Missing();
  bool has_more =
      std::ranges::any_of(missing, [this](const std::string& name) { return !watched_.contains(name); });
  watched_ = {missing.begin(), missing.end()};
  if (has_more) tasks_.Spawn("find missing images", Watch(++watches_));
}

Task<> CloudImages::Watch(std::uint64_t number) {
  Backoff pauses(kListingPauses, random_);
  while (true) {
    Duration pause = pauses.Next();
    co_await tasks_.loop().SleepFor(pause);
    if (number != watches_ || watched_.empty()) co_return;
    co_await Refresh();
  }
}

namespace {

constexpr Duration kPollInterval = std::chrono::seconds(2);
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

Task<std::string> MakeRecord(Session& session, const ImageUploadParameters& upload) {
  ApiCall call = ImageCall("POST", "/images");
  call.body = ImageProperties(upload, session.cloud());
  ApiReply reply = co_await session.Call(std::move(call));
  std::string id = reply.body.is_object() ? TextIn(reply.body.as_object(), "id") : "";
  if (id.empty()) throw Error(Verdict::kRetry, "the cloud accepted an image and returned no id");
  co_return id;
}

// The number of bytes sent.
Task<std::uint64_t> SendFile(Session& session, const ImageUploadParameters& upload, std::string path) {
  ApiCall call = ImageCall("PUT", std::move(path));
  std::uint64_t all = 0;
  auto report = [&upload, &all](std::uint64_t sent, std::uint64_t size) {
    all = sent;
    if (size > 0) upload.report({"sending the file", static_cast<int>(sent * 100 / size)});
  };
  call.upload = net::HttpUpload{upload.filename, report};
  call.upload_limit = upload.timeout;
  co_await session.Call(std::move(call));
  co_return all;
}

// The image's record.
Task<json::object> WaitImageActive(Session& session, std::string id) {
  while (true) {
    ApiReply reply = co_await session.Call(ImageCall("GET", "/images/" + id));
    json::object record = reply.body.is_object() ? std::move(reply.body.as_object()) : json::object();
    std::string status = TextIn(record, "status");
    if (status == "active") co_return record;
    // The service does not change such an image's status, and does not try again.
    std::string failed = TextIn(record, kFailedImport);
    if (!failed.empty()) throw Error(Verdict::kFail, fmt::format("the import of image {} failed", id));
    if (std::ranges::find(kUnderWay, status) == kUnderWay.end()) {
      throw Error(Verdict::kFail, fmt::format("image {} went into status {}", id, Excerpt(status)));
    }
    co_await session.loop().SleepFor(kPollInterval);
  }
}

// Error(kFail): the service has stored something else than was sent. What it does not say is no difference.
void CheckStored(const ImageUploadParameters& upload, std::uint64_t sent, const json::object& record) {
  auto compare = [&record](std::string_view what, std::string stored, const std::string& expected) {
    if (stored.empty() || expected.empty() || Lower(stored) == Lower(expected)) return;
    throw Error(Verdict::kFail,
                fmt::format("image {} was stored with {} {} in place of {}: it is damaged, and removed",
                            TextIn(record, "id"), what, Excerpt(stored), expected));
  };
  if (const json::value* size = record.if_contains("size"); size != nullptr && size->is_number())
    compare("the size", json::serialize(*size), std::to_string(sent));
  compare("the MD5 checksum", TextIn(record, "checksum"), upload.md5.value_or(""));
  std::string algorithm = TextIn(record, "os_hash_algo");
  std::string hash = TextIn(record, "os_hash_value");
  if (algorithm == "sha256") compare("the SHA-256 checksum", hash, upload.sha256.value_or(""));
  if (algorithm == "md5") compare("the MD5 checksum", hash, upload.md5.value_or(""));
}

Task<> FillDirectly(Session& session, const ImageUploadParameters& upload, std::string id) {
  std::uint64_t sent = co_await SendFile(session, upload, "/images/" + id + "/file");
  json::object record = co_await WaitImageActive(session, id);
  CheckStored(upload, sent, record);
}

// The service may convert the file, so its checksums say nothing.
Task<> FillByImport(Session& session, const ImageUploadParameters& upload, std::string id) {
  co_await SendFile(session, upload, "/images/" + id + "/stage");
  ApiCall import = ImageCall("POST", "/images/" + id + "/import");
  import.body = json::object{{"method", {{"name", "glance-direct"}}}};
  co_await session.Call(std::move(import));
  co_await WaitImageActive(session, id);
}

// `id` is empty until the cloud has given one.
Task<> Import(Session& session, const ImageUploadParameters& upload, std::string& id) {
  id = co_await MakeRecord(session, upload);
  co_await upload.announce(id);
  if (session.cloud().imports_images) {
    co_await FillByImport(session, upload, id);
  } else {
    co_await FillDirectly(session, upload, id);
  }
}

Task<> RemoveQuietly(Session& session, std::string id) {
  if (id.empty()) co_return;
  auto remove = [](Session& session, std::string id) -> Task<> {
    co_await DeleteImage(session, std::move(id));
  };
  std::string left =
      fmt::format("Image {}, whose upload failed, is left in cloud {}", id, session.cloud().name);
  co_await driver::cloud::RemoveQuietly(session.loop(), log::Logger("nodepool.OpenStackAdapter"),
                                        std::move(left), remove(session, id));
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
