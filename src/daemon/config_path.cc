#include "daemon/config_path.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "daemon/home.h"

namespace nodepool::daemon {

void RequireConfig(const std::string& path) {
  std::error_code error;
  bool is_missing =
      std::filesystem::status(ExpandHome(path), error).type() == std::filesystem::file_type::not_found;
  if (!is_missing) return;
  throw Error(
      Verdict::kInvalid,
      fmt::format("no configuration: {} does not exist; name one with -c FILE or {}", path, kConfigVariable));
}

}  // namespace nodepool::daemon
