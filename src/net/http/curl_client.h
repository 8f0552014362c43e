#pragma once

#include <memory>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "net/http/http_client.h"

namespace nodepool::net {

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
