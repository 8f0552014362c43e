#include "driver/loading/config_follower.h"

#include <utility>

#include "base/scope_exit.h"

namespace nodepool::driver {
namespace {

constexpr Duration kCheckInterval = std::chrono::seconds(1);
constexpr Duration kWriting = std::chrono::seconds(1);  // max. time for writing the files in several steps
constexpr Duration kRetryBad = std::chrono::seconds(10);

}  // namespace

ConfigFollower::ConfigFollower(Loop& loop, std::string path, std::optional<std::string> secure_path,
                               const Registry& drivers, config::DriverSchemas others)
    : loop_(loop),
      path_(std::move(path)),
      secure_path_(std::move(secure_path)),
      drivers_(drivers),
      others_(std::move(others)),
      logger_("nodepool.NodePool"),
      watch_(loop, Paths(), [this] { news_.Set(); }),
      loaded_(Identity()) {
  if (!watch_.fault().empty())
    logger_.Warning("Changes of the configuration are seen once a second, not at once: {}", watch_.fault());
}

std::vector<std::string> ConfigFollower::Paths() const {
  std::vector<std::string> paths = {path_};
  if (secure_path_) paths.push_back(*secure_path_);
  return paths;
}

std::string ConfigFollower::Identity() const {
  std::string identity;
  for (const std::string& path : Paths()) identity += FileIdentity(path) + " ";
  return identity;
}

Task<> ConfigFollower::AwaitNews() {
  Clock::TimerId timer = loop_.clock().CallAt(loop_.SteadyNow() + kCheckInterval, [this] { news_.Set(); });
  ScopeExit cancel([this, timer] { loop_.clock().CancelTimer(timer); });
  co_await news_.Wait();
  news_.Reset();
}

Task<std::shared_ptr<const LoadedConfig>> ConfigFollower::Next() {
  while (true) {
    co_await AwaitNews();
    bool is_changed = Identity() != loaded_;
    bool is_retry = retry_at_ && loop_.SteadyNow() >= *retry_at_;
    if (is_changed) changed_at_ = loop_.SteadyNow();
    if (!is_due_ && !is_retry && !is_changed) continue;
    bool is_only_retry = !is_due_ && !is_changed;
    if (auto config = TryLoad(is_only_retry)) co_return config;
  }
}

ConfigFollower::Faults ConfigFollower::FaultsOf(const LoadedConfig& config) {
  Faults faults;
  for (const auto& [name, provider] : config.providers) {
    if (!provider->fault.empty()) faults.emplace(name, provider->fault);
  }
  return faults;
}

void ConfigFollower::InForce(const LoadedConfig& config) {
  faults_ = FaultsOf(config);
  if (!faults_.empty()) retry_at_ = loop_.SteadyNow() + kRetryBad;
}

std::shared_ptr<const LoadedConfig> ConfigFollower::TryLoad(bool is_retry) {
  bool may_be_half_written = !is_due_ && loop_.SteadyNow() < changed_at_ + kWriting;
  is_due_ = false;
  retry_at_.reset();
  // Taken first, so that a change while the files are read is seen by the next check.
  loaded_ = Identity();
  auto config = LoadConfig(path_, secure_path_, drivers_, others_);
  if (config) {
    bool is_news = !is_retry || rejected_ || FaultsOf(**config) != faults_;
    InForce(**config);
    if (!is_news) return nullptr;
    logger_.Info("The configuration was read again from {}", path_);
    for (const std::string& warning : (*config)->common.warnings) logger_.Warning("{}", warning);
    if (std::exchange(rejected_, std::nullopt)) on_rejection_(rejected_);
    return *config;
  }
  if (may_be_half_written) {
    retry_at_ = changed_at_ + kWriting;
    return nullptr;
  }
  Reject(config.error().what());
  retry_at_ = loop_.SteadyNow() + kRetryBad;
  return nullptr;
}

// Logs a new error only.
void ConfigFollower::Reject(std::string error) {
  if (!rejected_ || rejected_->error != error) {
    logger_.Error(
        "Exception in main loop: the changed configuration cannot be used, the previous one stays in force: "
        "{}",
        error);
  }
  rejected_ = {rejected_ ? rejected_->since : loop_.Now(), std::move(error)};
  on_rejection_(rejected_);
}

}  // namespace nodepool::driver
