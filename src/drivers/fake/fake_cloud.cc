#include "drivers/fake/fake_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "async/task.h"
#include "base/error.h"
#include "base/text.h"

namespace nodepool::drivers {

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Metadata = std::map<std::string, std::string>;

// Ids are UUIDs; incomplete files have this prefix.
constexpr std::string_view kPartPrefix = "part-";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

FakeServer ServerFrom(const std::string& id, const json::object& record) {
  FakeServer server{.id = id, .name = json::value_to<std::string>(record.at("name"))};
  const json::object& flavor = record.at("flavor").as_object();
  server.flavor = {.name = json::value_to<std::string>(flavor.at("name")),
                   .ram = json::value_to<int>(flavor.at("ram")),
                   .vcpus = json::value_to<int>(flavor.at("vcpus"))};
  server.zone = json::value_to<std::string>(record.at("zone"));
  server.metadata = json::value_to<Metadata>(record.at("metadata"));
  server.status = FakeServerStatus::kActive;
  return server;
}

std::optional<std::string> OptionalText(const json::value& value) {
  if (value.is_null()) return std::nullopt;
  return json::value_to<std::string>(value);
}

FakeImage ImageFrom(const std::string& id, const json::object& record) {
  FakeImage image{.id = id,
                  .name = json::value_to<std::string>(record.at("name")),
                  .metadata = json::value_to<Metadata>(record.at("metadata"))};
  image.is_active = record.at("active").as_bool();
  image.file = {json::value_to<std::string>(record.at("format")),
                json::value_to<std::uint64_t>(record.at("size")), OptionalText(record.at("md5")),
                OptionalText(record.at("sha256"))};
  return image;
}

// Removes from the map what `exists` does not name.
template <class Record>
void RemoveVanished(std::map<std::string, Record>& records, const std::set<std::string>& exists) {
  std::erase_if(records, [&](const auto& entry) { return !exists.contains(entry.first); });
}

}  // namespace

FakeDirectory::FakeDirectory(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error(Verdict::kFail, fmt::format("{}: {}", path_, error.message()));
}

void FakeDirectory::Write(const std::string& id, const std::string& text) const {
  fs::path part = fs::path(path_) / fmt::format("{}{}", kPartPrefix, id);
  std::ofstream file(part);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(part, fs::path(path_) / id, error);
  if (!file || error) throw Error(Verdict::kFail, fmt::format("{}: cannot be written", part.string()));
}

void FakeDirectory::Add(const FakeServer& server) const {
  json::object flavor = {
      {"name", server.flavor.name}, {"ram", server.flavor.ram}, {"vcpus", server.flavor.vcpus}};
  json::object record = {{"kind", "server"},
                         {"name", server.name},
                         {"flavor", std::move(flavor)},
                         {"zone", server.zone},
                         {"metadata", json::value_from(server.metadata)}};
  Write(server.id, json::serialize(record));
}

void FakeDirectory::Add(const FakeImage& image) const {
  json::object record = {{"kind", "image"},
                         {"name", image.name},
                         {"metadata", json::value_from(image.metadata)},
                         {"active", image.is_active},
                         {"format", image.file.format},
                         {"size", image.file.size},
                         {"md5", image.file.md5 ? json::value(*image.file.md5) : json::value()},
                         {"sha256", image.file.sha256 ? json::value(*image.file.sha256) : json::value()}};
  Write(image.id, json::serialize(record));
}

void FakeDirectory::Remove(const std::string& id) const {
  std::error_code error;
  fs::remove(fs::path(path_) / id, error);
  if (error) throw Error(Verdict::kFail, fmt::format("{}/{}: {}", path_, id, error.message()));
}

void FakeDirectory::Refresh(std::map<std::string, FakeServer>& servers,
                            std::map<std::string, FakeImage>& images) const {
  std::set<std::string> exists;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    std::string id = entry.path().filename();
    if (!id.starts_with(kPartPrefix)) exists.insert(std::move(id));
  }
  if (error) throw Error(Verdict::kFail, fmt::format("{}: {}", path_, error.message()));
  RemoveVanished(servers, exists);
  RemoveVanished(images, exists);
  for (const std::string& id : exists) {
    if (servers.contains(id)) continue;
    auto known = images.find(id);
    // An image that another process was uploading may be complete now.
    if (known != images.end() && known->second.is_active) continue;
    try {
      json::object record = json::parse(ReadFile(fs::path(path_) / id)).as_object();
      if (record.at("kind") == "server") {
        servers.emplace(id, ServerFrom(id, record));
      } else {
        images.insert_or_assign(id, ImageFrom(id, record));
      }
    } catch (const std::exception&) {
      // Removed by another process meanwhile, or not a file of ours.
    }
  }
}

FakeCloud::FakeCloud(Loop& loop, Random& random, FakeSimulation settings)
    : loop_(loop),
      random_(random),
      settings_(std::move(settings)),
      failures_(settings_.seed.value_or(random.Next())) {
  if (settings_.directory) directory_.emplace(*settings_.directory);
}

void FakeCloud::Configure(FakeSimulation settings) {
  if (settings.seed && settings.seed != settings_.seed) failures_ = SeededRandom(*settings.seed);
  if (settings.directory != settings_.directory) {
    directory_.reset();
    if (settings.directory) directory_.emplace(*settings.directory);
  }
  settings_ = std::move(settings);
}

// Reads what other processes changed of a cloud in a directory.
void FakeCloud::Refresh() {
  if (!directory_) return;
  std::size_t before = servers_.size();
  directory_->Refresh(servers_, images_);
  used_cores_ = used_ram_ = 0;
  for (const auto& [id, server] : servers_) Count(server.flavor, 1);
  if (servers_.size() != before) changed_.NotifyAll();
}

const std::map<std::string, FakeServer>& FakeCloud::servers() {
  Refresh();
  return servers_;
}

const std::map<std::string, FakeImage>& FakeCloud::images() {
  Refresh();
  return images_;
}

std::string FakeCloud::CreateServer(FakeServerRequest request) {
  Refresh();
  ++create_attempts_;
  const FakeFlavor* flavor = FindFlavor(request.flavor);
  if (flavor == nullptr) throw Error(Verdict::kInvalid, "Flavor not found: " + Excerpt(request.flavor));
  if (request.image && !HasImage(*request.image)) {
    throw Error(Verdict::kInvalid, "Image not found: " + Excerpt(*request.image));
  }
  const auto& zones = settings_.availability_zones;
  if (request.zone && std::find(zones.begin(), zones.end(), *request.zone) == zones.end()) {
    throw Error(Verdict::kInvalid,
                "The requested availability zone is not available: " + Excerpt(*request.zone));
  }
  if (request.should_fail || Take(failing_creates_) || Happens(settings_.create_failure_rate)) {
    throw Error(Verdict::kFail, "the simulated cloud failed to create a server");
  }
  if (settings_.quota_error && ExceedsLimits(*flavor)) {
    throw Error(Verdict::kQuota, "Quota exceeded for something");
  }

  FakeServer server;
  server.id = random_.Uuid();
  server.name = std::move(request.name);
  server.flavor = *flavor;
  server.zone = request.zone.value_or(zones.empty() ? "" : zones.front());
  server.metadata = std::move(request.metadata);
  if (Take(creates_into_error_)) server.status = FakeServerStatus::kError;
  bool hangs = Take(hanging_creates_);
  if (directory_) directory_->Add(server);
  if (server.status == FakeServerStatus::kBuild) {
    bool is_broken = (broken_flavor_.empty() || flavor->name == broken_flavor_) && Happens(broken_share_);
    if (is_broken) broken_.insert(server.id);
    active_at_[server.id] = hangs ? SteadyTime::max() : loop_.SteadyNow() + settings_.create_latency;
  }
  ++created_count_;
  std::string id = server.id;
  Count(server.flavor, 1);
  servers_.emplace(id, std::move(server));
  return id;
}

Task<FakeServer> FakeCloud::WaitActive(std::string id) {
  while (true) {
    Refresh();
    auto server = servers_.find(id);
    if (server == servers_.end()) throw Error(Verdict::kNotFound, "server " + id + " does not exist");
    if (server->second.status == FakeServerStatus::kActive) co_return server->second;
    if (server->second.status == FakeServerStatus::kError) {
      throw Error(Verdict::kFail, "server " + id + " is in an error state");
    }
    SteadyTime when = active_at_.at(id);
    if (is_paused_ || when == SteadyTime::max()) {
      co_await changed_.Wait();
    } else if (when > loop_.SteadyNow()) {
      co_await loop_.SleepUntil(when);
    } else {
      bool is_broken = broken_.erase(id) > 0;
      server->second.status = is_broken ? FakeServerStatus::kError : FakeServerStatus::kActive;
      active_at_.erase(id);
    }
  }
}

Task<> FakeCloud::DeleteServer(std::string id) {
  Refresh();
  if (!servers_.contains(id)) throw Error(Verdict::kNotFound, "server " + id + " does not exist");
  if (Take(failing_deletes_) || Happens(settings_.delete_failure_rate)) {
    throw Error(Verdict::kRetry, "the simulated cloud failed to delete server " + id);
  }
  if (settings_.delete_latency > Duration::zero()) co_await loop_.SleepFor(settings_.delete_latency);
  if (directory_) directory_->Remove(id);
  if (!Erase(id)) co_return;
  active_at_.erase(id);
  ++deleted_count_;
  changed_.NotifyAll();
}

Task<std::string> FakeCloud::UploadImage(FakeImage image, driver::AnnounceImage announce, Report report) {
  std::string id;
  auto remove = [this, &id](const Failure&) { return RemoveFailed(id); };
  co_await OnFailure(Receive(std::move(image), std::move(announce), std::move(report), id), remove);
  co_return id;
}

Task<> FakeCloud::RemoveFailed(std::string id) {
  if (!Take(failing_image_deletes_)) Remove(id);
  co_return;
}

Task<> FakeCloud::Receive(FakeImage new_image, driver::AnnounceImage announce, Report report,
                          std::string& id) {
  new_image.is_active = false;
  id = Add(std::move(new_image));
  co_await announce(id);
  SteadyTime begun = loop_.SteadyNow();
  const Duration latency = settings_.upload_latency;
  for (int percent = 10; percent <= 100 && latency > Duration::zero(); percent += 10) {
    co_await loop_.SleepUntil(begun + latency * percent / 100);
    report({"sending the file", percent});
  }
  while (are_uploads_paused_) co_await changed_.Wait();
  if (Take(failing_uploads_) || Happens(settings_.upload_failure_rate)) {
    throw Error(Verdict::kFail, "the simulated cloud failed to take image " + id);
  }
  auto image = images_.find(id);
  if (image == images_.end()) throw Error(Verdict::kNotFound, "image " + id + " was deleted");
  image->second.is_active = true;
  if (directory_) directory_->Add(image->second);
}

std::string FakeCloud::UploadImage(std::string name, std::map<std::string, std::string> metadata,
                                   FakeImageFile file) {
  return Add({{}, std::move(name), std::move(metadata), std::move(file)});
}

std::string FakeCloud::Add(FakeImage image) {
  image.id = random_.Uuid();
  if (directory_) directory_->Add(image);
  std::string id = image.id;
  images_[id] = std::move(image);
  return id;
}

void FakeCloud::Remove(const std::string& image) {
  if (directory_) directory_->Remove(image);
  images_.erase(image);
}

Task<> FakeCloud::DeleteImage(std::string id) {
  if (Take(failing_image_deletes_) || Happens(settings_.delete_failure_rate)) {
    throw Error(Verdict::kRetry, "the simulated cloud failed to delete image " + id);
  }
  if (settings_.delete_latency > Duration::zero()) co_await loop_.SleepFor(settings_.delete_latency);
  Remove(id);
}

const FakeFlavor* FakeCloud::FindFlavor(const std::string& name) const {
  for (const FakeFlavor& flavor : settings_.flavors) {
    if (flavor.name == name) return &flavor;
  }
  return nullptr;
}

bool FakeCloud::HasImage(const std::string& name_or_id) {
  Refresh();
  auto image = images_.find(name_or_id);
  if (image != images_.end()) return image->second.is_active;
  return std::find(settings_.images.begin(), settings_.images.end(), name_or_id) != settings_.images.end();
}

void FakeCloud::ResumeUploads() {
  are_uploads_paused_ = false;
  changed_.NotifyAll();
}

void FakeCloud::TakeAway(const std::string& server) {
  if (directory_) directory_->Remove(server);
  Erase(server);
  active_at_.erase(server);
  changed_.NotifyAll();
}

void FakeCloud::ResumeCreates() {
  is_paused_ = false;
  changed_.NotifyAll();
}

// Reads every server only if their sum is limited: load tests create very many.
bool FakeCloud::ExceedsLimits(const FakeFlavor& flavor) const {
  const FakeLimits& limits = settings_.limits;
  if (static_cast<double>(servers_.size() + 1) > limits.instances) return true;
  return used_cores_ + flavor.vcpus > limits.cores || used_ram_ + flavor.ram > limits.ram;
}

bool FakeCloud::Erase(const std::string& id) {
  auto server = servers_.find(id);
  if (server == servers_.end()) return false;
  Count(server->second.flavor, -1);
  broken_.erase(id);
  servers_.erase(server);
  return true;
}

void FakeCloud::Count(const FakeFlavor& flavor, int servers) {
  used_cores_ += servers * flavor.vcpus;
  used_ram_ += servers * flavor.ram;
}

FakeCloud& FakeClouds::Of(const ProviderName& provider, Loop& loop, Random& random, FakeSimulation settings) {
  auto found = clouds_.find(provider);
  if (found == clouds_.end()) {
    auto cloud = std::make_unique<FakeCloud>(loop, random, std::move(settings));
    return *clouds_.emplace(provider, std::move(cloud)).first->second;
  }
  found->second->Configure(std::move(settings));
  return *found->second;
}

FakeCloud* FakeClouds::Find(const ProviderName& provider) {
  auto found = clouds_.find(provider);
  return found == clouds_.end() ? nullptr : found->second.get();
}

}  // namespace nodepool::drivers
