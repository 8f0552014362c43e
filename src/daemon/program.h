#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "config/config_loader.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "zk/client.h"

namespace nodepool::daemon {

struct Runtime;

// What a daemon runs in its session with ZooKeeper, e.g. a launcher.
class Part {
 public:
  virtual ~Part() = default;
  // Does what needs no ZooKeeper. Throws what keeps the daemon from starting.
  virtual void Prepare() {}
  // Begins its work, once ZooKeeper is connected.
  virtual Task<> Start() { co_return; }
  // `config` is in force from now on.
  virtual void Reconfigure(std::shared_ptr<const driver::LoadedConfig> /*config*/) {}
  // Ends its work. Called again after the session is closed, to end what the first call left
  // because its time was up.
  virtual Task<> Stop() = 0;
};

// Started and stopped in this order, destroyed in the reverse one.
using Parts = std::vector<std::unique_ptr<Part>>;

// What one daemon has that others do not.
struct Program {
  std::string name;                                    // "nodepool-launcher"
  std::string logger;                                  // of the daemon's own messages
  std::function<void(driver::Registry&)> add_drivers;  // the built-in ones
  config::DriverSchemas other_drivers;                 // that are known, but not built in
  // Where the configuration names no ZooKeeper server, there is one in this process.
  bool has_zookeeper = false;
  // By the first configuration. Both arguments outlive the parts.
  std::function<Parts(Runtime&, zk::Client&)> make_parts;
};

}  // namespace nodepool::daemon
