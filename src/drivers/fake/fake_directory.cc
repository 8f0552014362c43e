#include "drivers/fake/fake_directory.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

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

}  // namespace nodepool::drivers
