#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "async/backoff.h"
#include "async/event.h"
#include "base/clock.h"
#include "net/http/http.h"
#include "web/router.h"

namespace nodepool::web {

// Compresses a text that comes in pieces, as gzip (RFC 1952). It keeps 270 KB. Not copied or moved.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Appends what can be sent so far, which may be nothing.
  void Write(std::string& out, std::string_view text);
  // Appends the rest. Nothing is written afterwards.
  void Finish(std::string& out);

 private:
  struct Stream;

  void Run(std::string& out, std::string_view text, int flush);

  std::unique_ptr<Stream> stream_;
};

// The text as gzip. Pauses whenever `pace` is due; the text stays as it is meanwhile.
Task<std::string> Gzipped(const std::string& text, Pace& pace);

// The Accept header; nullopt: it is missing.
std::optional<std::string_view> AcceptOf(const net::HttpRequest& request);

// The offered media type that an Accept header prefers: the one with the best quality, the earlier one of
// equals; the first if the header is missing or malformed. nullopt: none is acceptable.
std::optional<std::string_view> ChooseType(std::optional<std::string_view> accept,
                                           std::span<const std::string_view> offers);

// Whether an Accept-Encoding header prefers gzip to a text as it is. False where it cannot be parsed; what
// the header does not name at all is preferred the least.
bool PrefersGzip(std::string_view accept_encoding);

enum class Format { kText, kJson };

// The format of a list (operations.md 6.1): text rather than JSON if both are accepted equally. nullopt: no
// format of ours is acceptable (D-62).
std::optional<Format> ChooseFormat(std::optional<std::string_view> accept);

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
