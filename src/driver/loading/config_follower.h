#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/file_watch.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/log/logging.h"
#include "config/validator.h"
#include "driver/loading/load_config.h"
#include "listing/configured.h"
#include "model/component.h"

namespace nodepool::driver {

// What `nodepool config-validate` finds without asking anybody (configuration.md 13).
struct ConfigCheck {
  // The strict check; where it finds no error, what the daemons refuse when they load the file, as errors,
  // and what they warn of.
  config::ValidationReport report;
  // Whether the launcher starts with the file, as far as the file decides.
  bool can_start = false;
  // What could be loaded; not to be used unless `can_start`.
  std::shared_ptr<const LoadedConfig> loaded;
};

ConfigCheck CheckConfig(const std::string& path, const Registry& drivers, const config::LoadOptions& options);

// Makes an error of every warning.
void MakeStrict(config::ValidationReport& report);

// What a configuration holds: "3 providers, 11 labels, 2 images".
std::string ContentsOf(const config::Config& config);

// The last line of the report: "FILE is good: 3 providers, 11 labels, 2 images", or how many
// findings there are and what they mean. `path` is FILE.
std::string Summary(const ConfigCheck& check, const std::string& path);

// The parts of the configuration that lists compare the records with.
listing::Configured ConfiguredBy(const LoadedConfig& config);

// Follows the files of a configuration: their identity, size and time of modification are
// compared with those of the last load (launcher.md 4.1) as soon as the system reports a change, and once a
// second, since it does not report every change (async/file_watch.h).
class ConfigFollower {
 public:
  // `drivers` outlives the follower. Create it right before the first load.
  ConfigFollower(Loop& loop, std::string path, std::optional<std::string> secure_path,
                 const Registry& drivers, config::DriverSchemas others);

  // The next good configuration: ends when a file changed, or Reload() was called, and everything loaded. A
  // configuration that does not load is logged once, with its place, when the files have been unchanged for a
  // second, since some programs write them in several steps. The previous one stays in force, and the files
  // are loaded again now and then, since what they refer to may have been fixed.
  Task<std::shared_ptr<const LoadedConfig>> Next();

  // Call with the first configuration. While providers of the one in force cannot be used
  // (ProviderConfig::fault), Next() returns a new one as soon as that changes.
  void InForce(const LoadedConfig& config);

  // Calls `listener` after each load that failed, with the reason and since when there has been one, and with
  // none when a load is good again, before Next() returns.
  using Rejected = std::optional<RejectedConfiguration>;
  void OnRejection(std::function<void(const Rejected&)> listener) { on_rejection_ = std::move(listener); }

  // Loads the files even if they are unchanged, e.g. because what they refer to has changed.
  void Reload() {
    is_due_ = true;
    news_.Set();
  }

 private:
  std::vector<std::string> Paths() const;
  std::string Identity() const;
  Task<> AwaitNews();
  std::shared_ptr<const LoadedConfig> TryLoad(bool is_retry);
  void Reject(std::string error);

  Loop& loop_;
  std::string path_;
  std::optional<std::string> secure_path_;
  const Registry& drivers_;
  config::DriverSchemas others_;
  log::Logger logger_;
  Event news_{"a change of the configuration"};
  FileWatch watch_;
  std::string loaded_;       // the files' identity at the last attempt
  SteadyTime changed_at_{};  // when the files were seen to differ
  Rejected rejected_;        // none: the last attempt was good
  std::optional<SteadyTime> retry_at_;
  using Faults = std::map<ProviderName, std::string>;
  static Faults FaultsOf(const LoadedConfig& config);
  Faults faults_;  // of the configuration in force
  bool is_due_ = false;
  std::function<void(const Rejected&)> on_rejection_ = [](const Rejected&) {};
};

}  // namespace nodepool::driver
