#include "net/http/curl_client.h"

#include <algorithm>
#include <array>

#include "base/log/logging.h"
#include "net/http/curl_multi.h"
#include "net/http/curl_transfer.h"
#include "net/http/url.h"

namespace nodepool::net {

namespace {

constexpr int kMaxRedirects = 30;

const log::Logger& RequestLogger() {
  static const log::Logger logger("nodepool.http");
  return logger;
}

// Secrets may be sent to the redirection's target: the same origin, or its host's usual encrypted port after
// the usual plain one.
bool IsSafeRedirect(const std::string& from, const std::string& to) {
  std::optional<Url> old_url = Url::Parse(from);
  std::optional<Url> new_url = Url::Parse(to);
  if (!old_url || !new_url || old_url->host() != new_url->host()) return false;
  if (new_url->scheme() == old_url->scheme()) return new_url->port() == old_url->port();
  return new_url->scheme() == "https" && new_url->port() == "443" && old_url->port() == "80";
}

bool IsRedirect(int status) {
  constexpr std::array kStatuses = {301, 302, 303, 305, 307, 308};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

}  // namespace

CurlClient::CurlClient(Loop& loop, BlockingPool& pool, std::string user_agent, std::size_t max_answer_bytes)
    : loop_(loop),
      pool_(pool),
      user_agent_(std::move(user_agent)),
      multi_(std::make_unique<CurlMulti>(loop, max_answer_bytes)) {}

CurlClient::~CurlClient() = default;

Task<HttpReply> CurlClient::Send(HttpCall call) {
  auto shared = std::make_shared<const HttpCall>(std::move(call));
  std::string url = shared->url;
  for (int hops = 0; hops <= kMaxRedirects; ++hops) {
    std::string redirect;
    HttpReply reply = co_await SendOnce(shared, url, redirect);
    if (!shared->follows_redirects || !IsRedirect(reply.status) || redirect.empty()) co_return reply;
    if (!IsSafeRedirect(url, redirect)) {
      throw HttpError(
          Verdict::kInvalid,
          UrlForLog(url) + " sends us to another place, which is not followed: " + UrlForLog(redirect), true);
    }
    url = std::move(redirect);
  }
  throw HttpError(Verdict::kInvalid, UrlForLog(shared->url) + ": too many redirections", true);
}

Task<HttpReply> CurlClient::SendOnce(std::shared_ptr<const HttpCall> call, std::string url,
                                     std::string& redirect) {
  std::unique_ptr<UploadReader> upload;
  if (call->upload) upload = co_await UploadReader::Open(pool_, call->upload->path);
  SteadyTime started = loop_.SteadyNow();
  CurlTransfer transfer(loop_, *multi_, call, url, user_agent_, std::move(upload));
  co_await transfer.Run();
  redirect = transfer.Redirect();
  HttpReply reply = transfer.TakeReply();
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(loop_.SteadyNow() - started);
  RequestLogger().Debug("{} {} -> {}, {} bytes in {} ms", call->method, UrlForLog(url), reply.status,
                        reply.body.size(), took.count());
  co_return reply;
}

}  // namespace nodepool::net
