#include "net/curl_client.h"

#include <curl/urlapi.h>

#include <array>

#include "base/logging.h"
#include "net/curl_multi.h"
#include "net/curl_transfer.h"

namespace nodepool::net {

namespace {

constexpr int kMaxRedirects = 30;

const log::Logger& RequestLogger() {
  static const log::Logger logger("nodepool.http");
  return logger;
}

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;

// Null when it is no URL.
Url Parse(const std::string& text) {
  Url url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return nullptr;
  return url;
}

std::string Part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) return "";
  std::string part(text);
  curl_free(text);
  return part;
}

// Secrets may follow: to the same host, and not from an encrypted place to a plain one.
bool IsSafeRedirect(const std::string& from, const std::string& to) {
  Url old_url = Parse(from);
  Url new_url = Parse(to);
  if (!old_url || !new_url) return false;
  bool is_same_host = Part(old_url, CURLUPART_HOST) == Part(new_url, CURLUPART_HOST);
  std::string old_scheme = Part(old_url, CURLUPART_SCHEME);
  std::string new_scheme = Part(new_url, CURLUPART_SCHEME);
  return is_same_host && (old_scheme == new_scheme || new_scheme == "https");
}

bool IsRedirect(int status) {
  constexpr std::array kStatuses = {301, 302, 303, 305, 307, 308};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

}  // namespace

const std::string& HttpReply::Header(std::string_view lower_case_name) const {
  static const std::string empty;
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return empty;
}

std::string UrlForLog(const std::string& text) {
  Url url = Parse(text);
  if (!url) return "(no URL)";
  for (CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(url.get(), part, nullptr, 0);
  }
  return Part(url, CURLUPART_URL);
}

CurlClient::CurlClient(Loop& loop, BlockingPool& pool, std::string user_agent)
    : loop_(loop),
      pool_(pool),
      user_agent_(std::move(user_agent)),
      multi_(std::make_unique<CurlMulti>(loop)) {}

CurlClient::~CurlClient() = default;

Task<HttpReply> CurlClient::Send(HttpCall call) {
  auto shared = std::make_shared<const HttpCall>(std::move(call));
  std::string url = shared->url;
  for (int hops = 0; hops <= kMaxRedirects; ++hops) {
    std::string redirect;
    HttpReply reply = co_await SendOnce(shared, url, redirect);
    if (!IsRedirect(reply.status) || redirect.empty()) co_return reply;
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
