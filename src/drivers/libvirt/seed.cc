#include "drivers/libvirt/seed.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace json = boost::json;

namespace {

// A list of YAML whose items are quoted as JSON, which YAML understands.
std::string YamlList(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += "\n  - " + json::serialize(json::string(item));
  return text.empty() ? " []" : text;
}

std::string UserData(const SeedContent& content) {
  if (content.userdata) return *content.userdata;
  return fmt::format("#cloud-config\nssh_authorized_keys:{}\n", YamlList(content.authorized_keys));
}

// In vendor data, beside which user data stay what they are.
std::string VendorData(const SshKey& host_key) {
  std::string text = "#cloud-config\nssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n";
  for (const std::string& line : Split(host_key.private_key, '\n')) {
    if (!line.empty()) text += "    " + line + "\n";
  }
  return text + fmt::format("  ed25519_public: {}\n", host_key.public_key);
}

Seed NoCloud(const SeedContent& content) {
  std::string meta_data = fmt::format("instance-id: {}\nlocal-hostname: {}\npublic-keys:{}\n", content.uuid,
                                      content.hostname, YamlList(content.authorized_keys));
  Seed seed{"cidata", {{"meta-data", std::move(meta_data)}, {"user-data", UserData(content)}}};
  if (content.host_key) seed.files["vendor-data"] = VendorData(*content.host_key);
  return seed;
}

json::object NetworkData(const SeedContent& content) {
  json::object link = {{"id", "nic0"}, {"type", "phy"}, {"ethernet_mac_address", content.mac}};
  json::object network = {{"id", "network0"}, {"link", "nic0"}, {"type", "ipv4_dhcp"}};
  return {{"links", json::array{std::move(link)}},
          {"networks", json::array{std::move(network)}},
          {"services", json::array()}};
}

Seed ConfigDrive(const SeedContent& content) {
  json::object keys;
  for (const std::string& key : content.authorized_keys) keys[fmt::format("key-{}", keys.size())] = key;
  json::object meta_data = {{"uuid", content.uuid},
                            {"hostname", content.hostname},
                            {"name", content.hostname},
                            {"public_keys", std::move(keys)}};
  Seed seed{"config-2",
            {{"openstack/latest/meta_data.json", json::serialize(meta_data) + "\n"},
             {"openstack/latest/network_data.json", json::serialize(NetworkData(content)) + "\n"},
             {"openstack/latest/user_data", UserData(content)}}};
  if (content.host_key) {
    json::object vendor_data = {{"cloud-init", VendorData(*content.host_key)}};
    seed.files["openstack/latest/vendor_data.json"] = json::serialize(vendor_data) + "\n";
  }
  return seed;
}

}  // namespace

Seed MakeSeed(SeedFormat format, const SeedContent& content) {
  return format == SeedFormat::kNoCloud ? NoCloud(content) : ConfigDrive(content);
}

const char* PartOf(SeedFormat format) {
  return format == SeedFormat::kNoCloud ? kNoCloudPart : kConfigDrivePart;
}

namespace {

using Archive = std::unique_ptr<archive, decltype(&archive_write_free)>;
using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

void CheckArchive(const Archive& iso, int status) {
  if (status >= ARCHIVE_WARN) return;
  const char* cause = archive_error_string(iso.get());
  throw Error(Verdict::kFail, fmt::format("the seed image could not be made: {}",
                                          cause != nullptr ? cause : "unknown cause"));
}

la_ssize_t Append(archive*, void* image, const void* bytes, std::size_t size) {
  static_cast<std::string*>(image)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

void AddFile(const Archive& iso, const std::string& path, const std::string& content) {
  Entry entry(archive_entry_new(), &archive_entry_free);
  archive_entry_set_pathname(entry.get(), path.c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0444);
  archive_entry_set_mtime(entry.get(), 0, 0);
  CheckArchive(iso, archive_write_header(iso.get(), entry.get()));
  la_ssize_t written = archive_write_data(iso.get(), content.data(), content.size());
  if (written != static_cast<la_ssize_t>(content.size())) CheckArchive(iso, ARCHIVE_FATAL);
}

}  // namespace

std::string IsoImage(const std::string& label, const std::map<std::string, std::string>& files) {
  std::string image;
  Archive iso(archive_write_new(), &archive_write_free);
  CheckArchive(iso, archive_write_set_format_iso9660(iso.get()));
  CheckArchive(iso, archive_write_set_option(iso.get(), nullptr, "volume-id", label.c_str()));
  CheckArchive(iso, archive_write_open(iso.get(), &image, nullptr, &Append, nullptr));
  for (const auto& [path, content] : files) AddFile(iso, path, content);
  CheckArchive(iso, archive_write_close(iso.get()));
  return image;
}

}  // namespace nodepool::drivers::libvirt
