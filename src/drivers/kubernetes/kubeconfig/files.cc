#include "drivers/kubernetes/kubeconfig/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/encoding.h"
#include "base/error.h"

namespace nodepool::drivers::kubernetes {

namespace {

constexpr std::size_t kLargest = 4 << 20;

}  // namespace

std::string WithHome(const std::string& path, const process::Environment& environment) {
  auto home = environment.find("HOME");
  bool is_at_home = path == "~" || path.starts_with("~/");
  return is_at_home && home != environment.end() ? home->second + path.substr(1) : path;
}

std::string ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargest, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    throw Error(Verdict::kInvalid, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) throw Error(Verdict::kInvalid, path + " is empty");
  if (text.size() == kLargest) throw Error(Verdict::kInvalid, path + " is too large");
  return text;
}

std::string ConfigEntry::folder() const { return std::filesystem::path(path_).parent_path().string(); }

ConfigEntry ConfigEntry::Sub(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return ConfigEntry(path_, found == nullptr ? config::Value() : *found);
}

bool ConfigEntry::Has(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return found != nullptr && !found->is_null();
}

std::string ConfigEntry::Text(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return found != nullptr && found->is_scalar() ? found->text() : "";
}

bool ConfigEntry::Truth(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return found != nullptr && found->kind() == config::Value::Kind::kBool && found->bool_value();
}

std::vector<std::string> ConfigEntry::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  const config::Value* found = value_.Find(key);
  if (found == nullptr || found->kind() != config::Value::Kind::kList) return texts;
  for (const config::Value& item : found->list()) {
    if (item.is_scalar()) texts.push_back(item.text());
  }
  return texts;
}

std::string ConfigEntry::Path(std::string_view key) const {
  std::string text = Text(key);
  return text.empty() ? "" : (std::filesystem::path(folder()) / text).lexically_normal().string();
}

std::string ConfigEntry::PemOrFile(const std::string& key, std::vector<std::string>& files) const {
  if (std::string data = Text(key + "-data"); !data.empty()) {
    std::optional<std::string> bytes = FromBase64(data);
    if (!bytes) throw Error(Verdict::kInvalid, fmt::format("{}: {}-data is not base64", path_, key));
    return *bytes;
  }
  std::string place = Path(key);
  if (place.empty()) return "";
  files.push_back(place);
  return ReadSmallFile(place);
}

}  // namespace nodepool::drivers::kubernetes
