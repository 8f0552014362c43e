#pragma once

#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

// The time with which calls are signed: this host's, unless AWS's differs so much that it refuses signatures
// (driver-aws.md 4).
class ServerClock {
 public:
  // The loop outlives the clock.
  ServerClock(Loop& loop, log::Logger logger) : loop_(loop), logger_(std::move(logger)) {}

  WallTime Now() const { return loop_.Now() + offset_; }
  // Takes over the time of the answer to `call`, whose signature was refused.
  void CorrectAfter(const net::HttpReply& refusal, std::string_view call);

 private:
  Loop& loop_;
  log::Logger logger_;
  Duration offset_{0};
};

}  // namespace nodepool::drivers::aws
