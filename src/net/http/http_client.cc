#include "net/http/http_client.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log/logging.h"
#include "net/http/curl.h"
#include "net/http/curl_transfer.h"

namespace nodepool::net {

const std::string& HttpReply::Header(std::string_view lower_case_name) const {
  static const std::string empty;
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return empty;
}

std::string UrlForLog(const std::string& text) {
  std::optional<Url> url = Url::Parse(text);
  if (!url) return "(no URL)";
  url->RemoveSecrets();
  return url->text();
}

namespace {

constexpr std::uint64_t kBlockBytes = 1 << 20;

}  // namespace

UploadReader::UploadReader(BlockingPool& pool, std::shared_ptr<const SparseFile> file)
    : pool_(pool), file_(std::move(file)) {}

Task<std::unique_ptr<UploadReader>> UploadReader::Open(BlockingPool& pool, std::string path) {
  auto open = [path = std::move(path)] { return std::make_shared<const SparseFile>(path); };
  std::shared_ptr<const SparseFile> file = co_await OnBlockingPool(pool, std::move(open));
  co_return std::unique_ptr<UploadReader>(new UploadReader(pool, std::move(file)));
}

UploadReader::Block UploadReader::Read(const SparseFile& file, std::uint64_t place) {
  SparseFile::Stretch next = file.At(place);
  Block block{next.length};
  if (!next.is_data) return block;
  block.length = std::min(next.length, kBlockBytes);
  block.bytes.resize(block.length);
  file.Read(place, block.bytes.data(), block.length);
  return block;
}

Task<> UploadReader::ReadBlock() {
  auto read = [file = file_, place = read_] { return Read(*file, place); };
  Block block = co_await OnBlockingPool(pool_, std::move(read));
  read_ += block.length;
  blocks_.push_back(std::move(block));
}

std::size_t UploadReader::Take(char* to, std::size_t limit) {
  if (blocks_.empty()) return 0;
  const Block& block = blocks_.front();
  std::size_t size = std::min<std::uint64_t>(limit, block.length - offset_);
  if (block.bytes.empty()) {
    std::memset(to, 0, size);
  } else {
    std::memcpy(to, block.bytes.data() + offset_, size);
  }
  offset_ += size;
  taken_ += size;
  if (offset_ == block.length) {
    blocks_.pop_front();
    offset_ = 0;
  }
  return size;
}

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
