#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/file_watch.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/log/logging.h"
#include "driver/loading/load_config.h"

namespace nodepool::driver {

// Follows the files of a configuration: their identity, size and time of modification are
// compared with those of the last load (launcher.md 4.1) as soon as something becomes of them,
// and once a second, since the system does not tell of everything (async/file_watch.h).
class ConfigFollower {
 public:
  // `drivers` outlives the follower. To be made right before the first load.
  ConfigFollower(Loop& loop, std::string path, std::optional<std::string> secure_path,
                 const Registry& drivers, config::DriverSchemas others);

  // The next good configuration: ends when a file changed, or Reload() was called, and
  // everything loaded. One that does not load is reported once, with its place, when the files
  // have been so for a second: some write them in several steps. The one in force stays so, and
  // the files are tried again now and then, since what they refer to may have been mended.
  Task<std::shared_ptr<const LoadedConfig>> Next();

  // `told` hears of each load that failed, and why.
  void TellRefusals(std::function<void(const std::string&)> told) { told_ = std::move(told); }

  // Load though nothing changed, e.g. what the files refer to.
  void Reload() {
    is_due_ = true;
    news_.Set();
  }

 private:
  std::vector<std::string> Paths() const;
  std::string Identity() const;
  Task<> AwaitNews();
  std::shared_ptr<const LoadedConfig> TryLoad();

  Loop& loop_;
  std::string path_;
  std::optional<std::string> secure_path_;
  const Registry& drivers_;
  config::DriverSchemas others_;
  log::Logger logger_;
  Event news_{"a change of the configuration"};
  FileWatch watch_;
  std::string loaded_;       // the files' identity at the last attempt
  SteadyTime changed_at_{};  // when it was seen to differ
  std::string last_error_;   // empty: the last attempt was good
  std::optional<SteadyTime> retry_at_;
  bool is_due_ = false;
  std::function<void(const std::string&)> told_ = [](const std::string&) {};
};

}  // namespace nodepool::driver
