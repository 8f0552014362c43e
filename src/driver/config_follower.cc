#include "driver/config_follower.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace nodepool::driver {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);
constexpr Duration kRetryBad = std::chrono::seconds(10);

std::string IdentityOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "absent";
  return fmt::format("{}:{}:{}:{}.{:09}", status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

}  // namespace

ConfigFollower::ConfigFollower(Loop& loop, std::string path, std::optional<std::string> secure_path,
                               const Registry& drivers, config::DriverSchemas others)
    : loop_(loop),
      path_(std::move(path)),
      secure_path_(std::move(secure_path)),
      drivers_(drivers),
      others_(std::move(others)),
      logger_("nodepool.NodePool"),
      loaded_(Identity()) {}

std::string ConfigFollower::Identity() const {
  return IdentityOf(path_) + (secure_path_ ? " " + IdentityOf(*secure_path_) : "");
}

Task<std::shared_ptr<const LoadedConfig>> ConfigFollower::Next() {
  while (true) {
    co_await loop_.SleepFor(kLook);
    bool is_retry = retry_at_ && loop_.SteadyNow() >= *retry_at_;
    if (!is_due_ && !is_retry && Identity() == loaded_) continue;
    if (auto config = TryLoad()) co_return config;
  }
}

std::shared_ptr<const LoadedConfig> ConfigFollower::TryLoad() {
  is_due_ = false;
  retry_at_.reset();
  // Taken first: a change while the files are read is seen at the next look.
  loaded_ = Identity();
  auto config = LoadConfig(path_, secure_path_, drivers_, others_);
  if (config) {
    logger_.Info("The configuration was read again from {}", path_);
    for (const std::string& warning : (*config)->common.warnings) logger_.Warning("{}", warning);
    last_error_.clear();
    return *config;
  }
  std::string error = config.error().what();
  if (error != last_error_) {
    logger_.Error("The changed configuration cannot be used, the previous one stays in force: {}", error);
  }
  told_(error);
  last_error_ = std::move(error);
  retry_at_ = loop_.SteadyNow() + kRetryBad;
  return nullptr;
}

}  // namespace nodepool::driver
