#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/log/logging.h"
#include "config/config_loader.h"
#include "daemon/options.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "model/component.h"
#include "zk/client.h"

namespace nodepool::daemon {

// Adds the drivers in the drivers directories: the `named` ones, else those of NODEPOOL_DRIVERS_PATH. What
// cannot be loaded is logged and skipped.
void AddOutsideDrivers(std::vector<std::string> named, driver::Registry& drivers, const log::Logger& logger);

struct Runtime;

// What a daemon runs in its session with ZooKeeper, e.g. a launcher.
class Part {
 public:
  virtual ~Part() = default;
  // Does what needs no ZooKeeper. Throws if the daemon cannot start.
  virtual void Prepare() {}
  // Begins its work; called once ZooKeeper is connected.
  virtual Task<> Start() { co_return; }
  // Puts `config` in force.
  virtual void Reconfigure(std::shared_ptr<const driver::LoadedConfig> /*config*/) {}
  // The changed configuration has a fault, so that the previous one stays in force; none: it can be used
  // again.
  virtual void ConfigurationRejected(const std::optional<RejectedConfiguration>& /*rejected*/) {}
  // Ends its work. Called again after the session is closed, to end what the first call could not end in
  // time.
  virtual Task<> Stop() = 0;
};

// Started and stopped in this order, destroyed in reverse.
using Parts = std::vector<std::unique_ptr<Part>>;

// What distinguishes one daemon from another.
struct Program {
  std::string name;                                    // "nodepool-launcher"
  std::string logger;                                  // of the daemon's own messages
  std::function<void(driver::Registry&)> add_drivers;  // the built-in ones
  config::DriverSchemas other_drivers;                 // known, but not built in
  // Whether to run a ZooKeeper server in this process if the configuration names none.
  bool has_zookeeper = false;
  // Changes each configuration that was loaded, before it is in force. Empty: nothing is changed.
  std::function<void(config::Config&)> adjust;
  // Creates the parts for the first configuration. Both arguments outlive them.
  std::function<Parts(Runtime&, zk::Client&)> make_parts;
};

// Runs the program's parts with ZooKeeper, which may be the embedded server, until a signal. Throws if they
// cannot start; both arguments outlive it.
Task<> RunParts(const Program& program, Runtime& runtime);

// Runs a daemon: goes into the background unless `options` say otherwise, sets up the log, and runs the parts
// until a signal. Returns the exit status; exceptions are written to standard error and to the log. Call
// while the process has one thread.
int RunDaemon(const Program& program, const Options& options);

}  // namespace nodepool::daemon
