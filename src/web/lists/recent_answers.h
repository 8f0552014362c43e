#pragma once

#include <functional>
#include <map>
#include <string>

#include "async/loop.h"
#include "web/router.h"

namespace nodepool::web {

// Answers that cost something to make: each is given again for a second, with the headers
// that say so, and as 304 to who has it (operations.md 6.6).
class RecentAnswers {
 public:
  // Appends to an empty body, which has room for as much as the one before.
  using Make = std::function<void(std::string& body, WallTime now)>;

  explicit RecentAnswers(Loop& loop) : loop_(loop) {}

  // `key` names all that the body depends on.
  Response Answer(const Request& request, const std::string& key, std::string content_type, const Make& make);

 private:
  struct Made {
    WallTime at;
    std::string body;
  };

  const Made& Find(const std::string& key, const Make& make);

  Loop& loop_;
  std::map<std::string, Made> made_;  // by key
};

}  // namespace nodepool::web
