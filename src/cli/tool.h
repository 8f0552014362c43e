#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/error.h"
#include "config/config_loader.h"
#include "driver/driver.h"
#include "zk/wire/wire_client.h"

namespace nodepool::cli {

// How long a command waits for its server, and how errors name it.
struct ServerWait {
  // The value of --wait-for-server, Duration::max() for no limit; the wait is then logged. None: waits for
  // `usual` without a message; for the embedded server only until it refuses.
  std::optional<Duration> asked;
  Duration usual = std::chrono::seconds(10);
  bool is_embedded = false;  // it is the server of `nodepool standalone` of this configuration
  std::string servers;       // "host:port,host:port"
};

// Waits for the session of a client. Created before the client, because it sets `on_trouble` of its options.
class ServerAwaiter {
 public:
  ServerAwaiter(Loop& loop, ServerWait wait, zk::WireOptions& options);

  // Error(kFail) if no server answers in time.
  Task<> Await(zk::Client& client);

 private:
  Task<> AwaitQuietly(zk::Client& client);
  Task<> AwaitAsAsked(zk::Client& client);
  bool IsRefused() const { return wait_.is_embedded && !trouble_.empty(); }
  Error NoServer(Duration waited) const;

  Loop& loop_;
  const ServerWait wait_;
  std::string trouble_;  // why no server could be used at the latest attempt
  Event changed_;
};

// The whole `nodepool` command: parses the arguments (without the program's name), reads the configuration,
// connects, runs one command and returns the exit status (operations.md 5.1, 5.2). Adds the drivers of the
// drivers directories to `drivers`. Ctrl-C and SIGTERM end the command gracefully; a second one ends it at
// once. `others` has the schemas of drivers that are not registered.
int RunTool(std::vector<std::string> arguments, driver::Registry& drivers, config::DriverSchemas others,
            std::ostream& out, std::ostream& err);

}  // namespace nodepool::cli
