#include "drivers/libvirt/seed.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace json = boost::json;

namespace {

using namespace std::string_view_literals;

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// The format is described in OpenSSH's PROTOCOL.key.
constexpr std::string_view kMagic = "openssh-key-v1\0"sv;
constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view kType = "ssh-ed25519";
constexpr std::size_t kKeySize = 32;
constexpr std::size_t kLineLength = 70;
constexpr std::size_t kBlockSize = 8;  // to which the private part is padded

std::string Number(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// With its length before it, as SSH writes texts.
std::string Text(std::string_view text) {
  return Number(static_cast<std::uint32_t>(text.size())).append(text);
}

std::string Padded(std::string text) {
  for (char next = 1; text.size() % kBlockSize != 0; ++next) text += next;
  return text;
}

std::string Armoured(const std::string& bytes) {
  std::string text = fmt::format("{}\n", kBegin);
  std::string base64 = Base64(bytes);
  for (std::size_t i = 0; i < base64.size(); i += kLineLength) {
    text.append(base64, i, kLineLength).append("\n");
  }
  return text + fmt::format("{}\n", kEnd);
}

[[noreturn]] void RefuseKey() {
  throw Error(Verdict::kInvalid, "not a private key in OpenSSH's format, such as ssh-keygen makes");
}

// Takes a number off the front.
std::uint32_t TakeNumber(std::string_view& bytes) {
  if (bytes.size() < 4) RefuseKey();
  std::uint32_t value = 0;
  for (char c : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(c);
  bytes.remove_prefix(4);
  return value;
}

std::string_view TakeText(std::string_view& bytes) {
  std::uint32_t size = TakeNumber(bytes);
  if (bytes.size() < size) RefuseKey();
  std::string_view text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return text;
}

std::string Unarmoured(std::string_view text) {
  std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) RefuseKey();
  std::string base64(text.substr(begin + kBegin.size(), end - begin - kBegin.size()));
  std::erase_if(base64, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  std::optional<std::string> bytes = FromBase64(base64);
  if (!bytes) RefuseKey();
  return *bytes;
}

}  // namespace

SshKey MakeSshKey() {
  PrivateKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), &EVP_PKEY_free);
  std::array<unsigned char, kKeySize> secret_bytes{}, public_bytes{};
  std::size_t secret_size = kKeySize, public_size = kKeySize;
  bool is_made = key && EVP_PKEY_get_raw_private_key(key.get(), secret_bytes.data(), &secret_size) == 1 &&
                 EVP_PKEY_get_raw_public_key(key.get(), public_bytes.data(), &public_size) == 1;
  if (!is_made) throw Error(Verdict::kFail, "OpenSSL could not make an ed25519 key");
  std::string secret(secret_bytes.begin(), secret_bytes.end());
  std::string shown(public_bytes.begin(), public_bytes.end());
  std::string blob = Text(kType) + Text(shown);
  // The check number, twice, would show a wrong passphrase; there is none.
  std::string hidden = Number(0) + Number(0) + blob + Text(secret + shown) + Text("nodepool");
  std::string bytes(kMagic);
  bytes += Text("none") + Text("none") + Text("") + Number(1) + Text(blob) + Text(Padded(hidden));
  return {Armoured(bytes), fmt::format("{} {}", kType, Base64(blob))};
}

std::string PublicKeyOf(std::string_view private_key) {
  std::string bytes = Unarmoured(private_key);
  std::string_view rest = bytes;
  if (!rest.starts_with(kMagic)) RefuseKey();
  rest.remove_prefix(kMagic.size());
  for (int skipped = 0; skipped < 3; ++skipped) TakeText(rest);  // cipher, key derivation and its options
  if (TakeNumber(rest) != 1) RefuseKey();
  std::string_view blob = TakeText(rest);
  std::string_view fields = blob;
  std::string_view type = TakeText(fields);
  return fmt::format("{} {}", type, Base64(blob));
}

namespace fs = std::filesystem;

namespace {

[[noreturn]] void Refuse(const std::string& path, const std::string& why) {
  throw Error(Verdict::kInvalid,
              fmt::format("the key {} cannot be used: {}; set key to another file, or to false", path, why));
}

void MakeFolder(const fs::path& folder) {
  std::error_code fault;
  if (folder.empty() || fs::exists(folder, fault)) return;
  fs::create_directories(folder, fault);
  if (!fault) fs::permissions(folder, fs::perms::owner_all, fault);
  if (fault) Refuse(folder, fault.message());
}

void WritePrivately(const std::string& path, const std::string& content) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) Refuse(path, std::strerror(errno));
  ScopeExit close_file([&] { close(file); });
  bool is_written = write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (!is_written || fsync(file) != 0) Refuse(path, std::strerror(errno));
}

// Under its final name the file is complete from the beginning, and never replaced.
void MakeKey(const std::string& path) {
  MakeFolder(fs::path(path).parent_path());
  std::string unfinished = fmt::format("{}.{}", path, getpid());
  ScopeExit remove([&] { unlink(unfinished.c_str()); });
  WritePrivately(unfinished, MakeSshKey().private_key);
  if (link(unfinished.c_str(), path.c_str()) != 0 && errno != EEXIST) Refuse(path, std::strerror(errno));
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Refuse(path, std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

const std::optional<std::string>& ProviderKey::PublicKey() {
  if (!path_ || public_key_) return public_key_;
  std::error_code fault;
  if (!fs::exists(*path_, fault)) MakeKey(*path_);
  try {
    public_key_ = PublicKeyOf(ReadAll(*path_));
  } catch (const Error& error) {
    Refuse(*path_, error.message());
  }
  return public_key_;
}

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
