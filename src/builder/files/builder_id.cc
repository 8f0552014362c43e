#include "builder/files/builder_id.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace nodepool::builder {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Refuse(const fs::path& path) {
  throw Error(Verdict::kInvalid, fmt::format("images-dir: {}: {}", path.string(), std::strerror(errno)));
}

void MakeDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  throw Error(Verdict::kInvalid,
              fmt::format("images-dir {} cannot be made: {}; make it for the user that the "
                          "builder runs as: install -d -o nodepool {}",
                          path, error.message(), path));
}

}  // namespace

std::string ReadBuilderId(const std::string& images_dir, Random& random) {
  MakeDirectory(images_dir);
  fs::path path = fs::path(images_dir) / "builder_id.txt";
  errno = 0;
  if (std::ifstream file(path, std::ios::binary); file) {
    std::ostringstream text;
    text << file.rdbuf();
    // Nothing, or zeros, is what a crash of the machine has left of it.
    if (text.str().find_first_not_of('\0') != std::string::npos) return text.str();
  } else if (errno != ENOENT) {
    Refuse(path);
  }
  // Written atomically, so that a crash leaves no partial id.
  std::string id = random.Uuid();
  fs::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << id;
  file.close();
  if (!file) Refuse(part);
  fs::rename(part, path);
  return id;
}

}  // namespace nodepool::builder
