#pragma once

#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/error.h"
#include "zk/wire/wire_client.h"

namespace nodepool::cli {

// For how long a command waits for its server, and how it is named in errors.
struct ServerWait {
  // As --wait-for-server says, Duration::max() for ever; the log then says what is waited for.
  // None: for `usual`, without a word; for the embedded server only until it refuses.
  std::optional<Duration> asked;
  Duration usual = std::chrono::seconds(10);
  bool is_embedded = false;  // it is the server of `nodepool standalone` of this configuration
  std::string servers;       // "host:port,host:port"
};

// Waits for the session of a client. Made before the client, of whose options it sets `on_trouble`.
class ServerAwaiter {
 public:
  ServerAwaiter(Loop& loop, ServerWait wait, zk::WireOptions& options);

  // Error(kFail) when there is no server in time.
  Task<> Await(zk::Client& client);

 private:
  Task<> AwaitQuietly(zk::Client& client);
  Task<> AwaitAsAsked(zk::Client& client);
  bool IsRefused() const { return wait_.is_embedded && !trouble_.empty(); }
  Error Failure(Duration waited) const;

  Loop& loop_;
  const ServerWait wait_;
  std::string trouble_;  // why no server could be used at the latest try
  Event changed_;
};

}  // namespace nodepool::cli
