#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sparse_file.h"

namespace nodepool::net {

// How servers are verified, and this client's own certificate. Paths of PEM files; empty: the
// system's authorities, no certificate of our own.
struct TlsSettings {
  bool verifies_peer = true;
  std::string ca_path;
  std::string certificate_path;
  std::string key_path;
  // The same as PEM text in place of a path; wins over it.
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;  // secret
  // The name that the server's certificate must have, and that the server is asked for (SNI), where it is
  // not the URL's host; empty: the URL's host.
  std::string server_name;
};

// None is infinite (D-35).
struct HttpTimeouts {
  Duration connect = std::chrono::seconds(10);  // name, connection and TLS
  Duration answer = std::chrono::seconds(60);   // from the request's last byte to the answer's first
  Duration stall = std::chrono::seconds(60);    // between bytes, either way
  Duration total = std::chrono::minutes(5);     // all of it
};

// A file to send as the body. It is read in blocks outside the loop; its length is the one at the
// start.
struct HttpUpload {
  std::string path;
  // Called now and then with the number of bytes handed over; may be null.
  std::function<void(std::uint64_t sent, std::uint64_t size)> progress;
};

// Names and values, in the order in which they are sent.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Takes a piece of an answer's body as it arrives; called on the loop. False: no more is wanted, and the
// call ends with an HttpError of kFail. Must not throw, nor begin or cancel a call.
using HttpSink = std::function<bool(std::string_view bytes)>;

// A request to a server.
struct HttpCall {
  std::string method = "GET";
  std::string url;
  HttpHeaders headers;
  std::string body;  // or:
  std::optional<HttpUpload> upload;
  // Whether the server may get it more than once; none: depends on the method, true unless it is POST. What
  // may not, and each upload, is sent at most once, on a connection of its own: a connection that is kept may
  // be closed by the server at any moment, and nobody knows then whether it has carried the call out.
  std::optional<bool> may_be_repeated;
  HttpTimeouts timeouts;
  std::shared_ptr<const TlsSettings> tls;  // null: the defaults
  std::size_t max_bytes = 64 << 20;        // of the answer's body
  bool uses_proxy = true;                  // where the environment names one
  bool follows_redirects = true;           // as Send() describes; else a redirection is an answer
  std::string proxy;                       // its URL, in place of the environment's; empty: the environment's
  // Gets the body of an answer with a status below 300, for answers that go on; HttpReply::body is empty
  // then, and max_bytes does not count. Null: the whole body is in the reply.
  HttpSink sink;

  bool is_sent_once() const { return upload.has_value() || !may_be_repeated.value_or(method != "POST"); }
};

struct HttpReply {
  int status = 0;
  HttpHeaders headers;  // names in lower case, in order
  std::string body;
  // The first of that name, or the empty text.
  const std::string& Header(std::string_view lower_case_name) const;
};

// There was no complete answer. kRetry: the network, a time-out, a server that closed the
// connection; kInvalid: a URL or file that cannot be used, a certificate that is not trusted;
// kFail: an answer beyond the limits.
class HttpError : public Error {
 public:
  HttpError(Verdict verdict, std::string message, bool may_have_been_seen, bool is_unknown_host = false)
      : Error(verdict, std::move(message)),
        may_have_been_seen_(may_have_been_seen),
        is_unknown_host_(is_unknown_host) {}
  // Whether the server may have acted on the request: repeating one that is not idempotent could
  // then do it twice.
  bool may_have_been_seen() const { return may_have_been_seen_; }
  // The name service knows no such host.
  bool is_unknown_host() const { return is_unknown_host_; }

 private:
  bool may_have_been_seen_;
  bool is_unknown_host_;
};

// Sends requests to servers. Any status is an answer; only its absence is an error (HttpError).
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Redirections are followed with the same method and body, at most 30, to the same
  // host only: headers hold secrets. May be cancelled at any time.
  virtual Task<HttpReply> Send(HttpCall call) = 0;
};

// A URL as logs show it: without user, password, query and fragment.
std::string UrlForLog(const std::string& url);

// No authority that the client trusts has signed the server's certificate.
class UntrustedServer : public HttpError {
 public:
  explicit UntrustedServer(std::string message) : HttpError(Verdict::kInvalid, std::move(message), false) {}
};

// A file read in blocks on the blocking pool, some of them in advance: memory use is the same
// however large the file is. Its holes are not read.
class UploadReader {
 public:
  // Opens the file, on the pool. Error(kInvalid) when it cannot be read.
  static Task<std::unique_ptr<UploadReader>> Open(BlockingPool& pool, std::string path);

  std::uint64_t size() const { return file_->size(); }

  // Whether another block is to be read: the file has one, and few are waiting.
  bool wants_block() const { return read_ < size() && blocks_.size() < kAhead; }
  // Reads the next block. Error(kFail) when the file became shorter or cannot be read.
  Task<> ReadBlock();

  // At most `limit` bytes of those read; 0: none are available now, or the end is reached.
  std::size_t Take(char* to, std::size_t limit);
  std::uint64_t taken() const { return taken_; }
  bool is_at_end() const { return taken_ == size(); }

 private:
  static constexpr std::size_t kAhead = 3;
  struct Block {
    std::uint64_t length = 0;
    std::string bytes = {};  // empty: a hole
  };

  UploadReader(BlockingPool& pool, std::shared_ptr<const SparseFile> file);
  static Block Read(const SparseFile& file, std::uint64_t place);

  BlockingPool& pool_;
  std::shared_ptr<const SparseFile> file_;
  std::uint64_t read_ = 0;
  std::uint64_t taken_ = 0;
  std::deque<Block> blocks_;
  std::uint64_t offset_ = 0;  // in the first block
};

class CurlMulti;

// HttpClient on libcurl: connections are reused and shared, HTTP/2 is used over TLS where the
// server offers it, proxies are read from the environment (http_proxy, https_proxy, no_proxy). Each
// call is logged at debug level without its query, headers and body. Of answers
// longer than 1 MiB all that arrive at a time have a bound in common: one that does not fit fails with
// kRetry.
class CurlClient : public HttpClient {
 public:
  // Everything outlives the client. `pool` reads the files that are uploaded.
  CurlClient(Loop& loop, BlockingPool& pool, std::string user_agent,
             std::size_t max_answer_bytes = std::size_t{128} << 20);
  ~CurlClient() override;  // no call may be under way

  Task<HttpReply> Send(HttpCall call) override;

 private:
  Task<HttpReply> SendOnce(std::shared_ptr<const HttpCall> call, std::string url, std::string& redirect);

  Loop& loop_;
  BlockingPool& pool_;
  std::string user_agent_;
  std::unique_ptr<CurlMulti> multi_;
};

}  // namespace nodepool::net
