#pragma once

#include <functional>
#include <map>
#include <string>

#include "async/loop.h"
#include "web/router.h"

namespace nodepool::web {

// Response cache: expensive answers are reused for a second, with the headers that say so, and answered with
// 304 if the client has them (operations.md 6.6).
class RecentAnswers {
 public:
  // Appends to an empty body, which has the capacity of the previous one.
  using Make = std::function<void(std::string& body, WallTime now)>;

  explicit RecentAnswers(Loop& loop) : loop_(loop) {}

  // From now on answers show what is known now.
  void Clear() { made_.clear(); }

  // `key` identifies everything that the body depends on.
  Response Answer(const Request& request, const std::string& key, std::string content_type, const Make& make);

 private:
  struct Made {
    WallTime at;
    SteadyTime stale;  // from then on; the wall clock may be set back
    std::string body;
  };

  const Made& Find(const std::string& key, const Make& make);

  Loop& loop_;
  std::map<std::string, Made> made_;  // by key
};

}  // namespace nodepool::web
