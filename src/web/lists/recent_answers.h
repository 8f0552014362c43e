#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/gate.h"
#include "async/pace.h"
#include "base/clock.h"
#include "net/http/http.h"
#include "web/router.h"

namespace nodepool::web {

// Response cache: expensive answers are reused for a second, with the headers that say so, and answered with
// 304 if the client has them (operations.md 6.6). Large ones are compressed for clients that prefer that
// (http.md 2.3), once. One answer is made at a time.
class RecentAnswers {
 public:
  // Appends to an empty body, which has the capacity of the previous one, and pauses whenever `pace` is due.
  // An Error with verdict kRetry or kQuota says why there is no answer now (503).
  using Make = std::function<Task<>(std::string& body, WallTime now, Pace& pace)>;

  // An answer is made in stretches, between which the loop does its other work.
  explicit RecentAnswers(Loop& loop, Stretch stretch = {}) : loop_(loop), stretch_(stretch) {}

  // From now on answers show what is known now.
  void Clear();

  // `key` identifies everything that the body depends on.
  Task<Response> Answer(Request request, std::string key, std::string content_type, Make make);

 private:
  struct Made {
    WallTime at;
    SteadyTime stale;  // from then on; the wall clock may be set back
    std::shared_ptr<std::string> body;
    std::shared_ptr<const std::string> gzip = nullptr;  // once somebody has asked for it
  };
  enum class Form { kPlain, kGzip };

  // One that is not stale, and has the form, if it is large enough to have it.
  std::optional<Made> FindFresh(const std::string& key, Form form) const;
  // The empty body for a new answer.
  std::shared_ptr<std::string> NewBody(const std::string& key);
  Task<Made> Get(std::string key, Form form, Make make);
  // The two steps of Get(), in the gate.
  Task<Made> MakeNew(std::string key, Make make);
  Task<Made> Compress(std::string key, Made made);

  Loop& loop_;
  Stretch stretch_;
  Gate making_{1};
  std::map<std::string, Made> made_;  // by key
  std::uint64_t generation_ = 0;      // how often it was cleared
};

// Whether the client gets the answer compressed (http.md 2.3); adds the headers that say so.
bool AddCoding(net::HttpResponse& response, const Request& request);

// Adds the headers of every successful answer: any page may read it, and it may be cached for a second
// (operations.md 6.6).
void AddCachingHeaders(net::HttpResponse& response, WallTime computed);

}  // namespace nodepool::web
