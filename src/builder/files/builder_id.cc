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

}  // namespace

std::string ReadBuilderId(const std::string& images_dir, Random& random) {
  fs::path path = fs::path(images_dir) / "builder_id.txt";
  errno = 0;
  if (std::ifstream file(path, std::ios::binary); file) {
    std::ostringstream text;
    text << file.rdbuf();
    if (!text.str().empty()) return text.str();
  } else if (errno != ENOENT) {
    Refuse(path);
  }
  // In one step, so that being killed leaves no half an id.
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
