#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool::net {

struct ZmqLimits {
  std::size_t message_bytes = 64 * 1024;  // the connection to a publisher that sends more is closed
  int queued_messages = 1000;             // further ones are dropped
};

// Subscribes to everything that the ZeroMQ publisher at `endpoint` (tcp://host:port or ipc://path)
// sends, and passes each message to `receive`, the frames of a message joined by a blank. The
// connection is made, and restored when it breaks, in the background; messages sent meanwhile are
// lost. Ends only by being cancelled, or with Error(kInvalid) when the endpoint cannot be used,
// Error(kFail) when no socket can be created.
Task<> ReceiveFromPublisher(Loop& loop, std::string endpoint, std::function<void(std::string_view)> receive,
                            log::Logger logger, ZmqLimits limits = {});

}  // namespace nodepool::net
