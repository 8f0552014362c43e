#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool::net {

struct ZmqLimits {
  std::size_t message_bytes = 64 * 1024;  // a publisher that sends more is hung up on
  int queued_messages = 1000;             // what is more is dropped
};

// Subscribes to everything that the ZeroMQ publisher at `endpoint` (tcp://host:port or
// ipc://path) sends, and hands each message to `receive`, frames of one message joined by a
// blank. The connection is made, and made again when it broke, in the background; what is sent
// meanwhile is lost. Ends only by being cancelled, or with Error(kInvalid) when the endpoint
// cannot be used, Error(kFail) when there is no socket to be had.
Task<> ReceiveFromPublisher(Loop& loop, std::string endpoint, std::function<void(std::string_view)> receive,
                            log::Logger logger, ZmqLimits limits = {});

}  // namespace nodepool::net
