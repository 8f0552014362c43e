#pragma once

#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// The time with which calls are signed: this host's, unless the cloud's differs so much that it refuses
// signatures (driver-aws.md 4, driver-gce.md 3).
class ServerClock {
 public:
  // The loop outlives the clock. `cloud`: its name, for the log.
  ServerClock(Loop& loop, log::Logger logger, std::string cloud)
      : loop_(loop), logger_(std::move(logger)), cloud_(std::move(cloud)) {}

  WallTime Now() const { return loop_.Now() + offset_; }
  // Of the cloud's time to this host's, as far as it is known.
  Duration offset() const { return offset_; }
  // Takes over the time of the answer to `call`, whose signature was refused. `request_id`: the cloud's id of
  // the call, for the log; may be empty.
  void CorrectAfter(const net::HttpReply& refusal, std::string_view call, const std::string& request_id = "");

 private:
  Loop& loop_;
  log::Logger logger_;
  std::string cloud_;
  Duration offset_{0};
};

}  // namespace nodepool::driver::cloud::api
