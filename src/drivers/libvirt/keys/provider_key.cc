#include "drivers/libvirt/keys/provider_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/scope_exit.h"
#include "drivers/libvirt/keys/ssh_key.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
