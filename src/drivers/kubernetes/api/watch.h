#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "async/attempt.h"
#include "async/blocking_pool.h"
#include "async/event.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

// An event of a watch (driver-kubernetes.md 4.4).
struct WatchEvent {
  enum class Kind {
    kChanged,   // the object is new or another now
    kDeleted,   // the object as it was last
    kBookmark,  // the object has no more than a version
    kError,     // the watch ends; no object
  };
  Kind kind = Kind::kError;
  Object object;
  std::string version;  // of the cluster, by the object
};

// Reads a line of a watch; none: it is no event. A long one is read in the pool.
Task<std::optional<WatchEvent>> ReadEvent(BlockingPool& pool, std::string line);

// How much a LineQueue holds, in bytes.
struct LineLimits {
  std::size_t line = 4 << 20;
  std::size_t waiting = 16 << 20;  // of all lines together
};

// The lines of an answer that goes on, from pieces as they arrive, for a task that handles them one after the
// other. What waits for it is bounded.
class LineQueue {
 public:
  explicit LineQueue(LineLimits limits = {}) : limits_(limits) {}

  // A piece. False: it exceeds a limit, and no more is wanted.
  bool Add(std::string_view text);
  // No more arrives; `failure`: since the call has failed.
  void Close(std::optional<Failure> failure);

  // The next line that is not empty, without its end; none: the answer has ended. Errors: that of Close, once
  // the lines before it are taken; Error(kFail): a limit was exceeded.
  Task<std::optional<std::string>> Next();

 private:
  bool Refuse(std::string why);

  LineLimits limits_;
  std::deque<std::string> lines_;
  std::string begun_;        // a line whose end has not arrived
  std::size_t waiting_ = 0;  // of lines_ and begun_
  bool is_closed_ = false;
  std::optional<Failure> failure_;
  Event changed_{"a line of the cluster's answer"};
};

}  // namespace nodepool::drivers::kubernetes
