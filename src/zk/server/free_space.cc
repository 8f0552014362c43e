#include "zk/server/free_space.h"

#include <fmt/format.h>

#include <filesystem>

namespace nodepool::zk::server {

std::string ShortageText(const std::string& folder, std::uintmax_t available) {
  constexpr std::uintmax_t kEnough = 10'000'000;
  if (available >= kEnough) return "";
  return fmt::format("; {:.1f} MB are free in {}", static_cast<double>(available) / 1e6, folder);
}

std::string ShortageNear(const std::string& path) {
  std::error_code error;
  std::string folder = std::filesystem::path(path).parent_path();
  std::uintmax_t available = std::filesystem::space(folder, error).available;
  return error ? "" : ShortageText(folder, available);
}

}  // namespace nodepool::zk::server
