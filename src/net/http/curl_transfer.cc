#include "net/http/curl_transfer.h"

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <algorithm>

#include "base/text.h"
#include "net/http/curl.h"
#include "net/http/http_client.h"

namespace nodepool::net {

namespace {

constexpr std::size_t kMaxHeaderBytes = 256 * 1024;
constexpr long kUploadBuffer = 256 * 1024;
// Of an answer's body, whatever others need.
constexpr std::size_t kOwnBytes = 1 << 20;

// Failures that repeating does not cure.
bool IsLasting(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return true;
    default:
      return false;
  }
}

// libcurl's message without the time that the attempt took, so that the same failure reads the same:
// "Failed to connect to cloud port 5000 after 3 ms: Couldn't connect to server".
std::string WithoutDuration(std::string message) {
  constexpr std::string_view kBefore = " after ";
  std::size_t begin = message.find(kBefore);
  if (begin == std::string::npos) return message;
  std::size_t unit = message.find_first_not_of("0123456789", begin + kBefore.size());
  for (std::string_view name : {" ms", " milliseconds"}) {
    if (unit != std::string::npos && message.compare(unit, name.size(), name) == 0)
      return message.erase(begin, unit + name.size() - begin);
  }
  return message;
}

// Whether the check of the server's certificate has found no authority to trust; not for one that is out of
// date, or of another name.
bool IsOfUnknownAuthority(CURL* easy) {
  long result = X509_V_OK;
  curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result);
  switch (result) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return true;
    default:
      return false;
  }
}

}  // namespace

CurlTransfer::CurlTransfer(Loop& loop, CurlMulti& multi, std::shared_ptr<const HttpCall> call,
                           const std::string& url, const std::string& user_agent,
                           std::unique_ptr<UploadReader> upload)
    : loop_(loop),
      multi_(multi),
      call_(std::move(call)),
      url_for_log_(UrlForLog(url)),
      upload_(std::move(upload)),
      easy_(curl_easy_init()),
      started_(loop.SteadyNow()),
      last_sign_(started_) {
  Configure(url, user_agent);
  ConfigureTls();
  ConfigureHeaders();
  ConfigureBody();
  ConfigureRepetition();
}

CurlTransfer::~CurlTransfer() {
  multi_.ReturnSpace(shared_bytes_);
  multi_.Remove(easy_);
  if (timer_) loop_.clock().CancelTimer(*timer_);
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

void CurlTransfer::Configure(const std::string& url, const std::string& user_agent) {
  curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, user_agent.c_str());
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  if (!call_->uses_proxy) curl_easy_setopt(easy_, CURLOPT_NOPROXY, "*");
  if (!call_->proxy.empty()) {
    curl_easy_setopt(easy_, CURLOPT_PROXY, call_->proxy.c_str());
    curl_easy_setopt(easy_, CURLOPT_NOPROXY, "");
  }
  // A network that died is noticed below an answer that goes on for long without a byte.
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's headers are not the answer
  // A name that is still being resolved does not hold up a caller that stops waiting for it.
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_);
  auto connect_ms = std::chrono::duration_cast<std::chrono::milliseconds>(call_->timeouts.connect).count();
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_ms));
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &CurlTransfer::OnHeader);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &CurlTransfer::OnBody);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  if (call_->tls != nullptr && !call_->tls->server_name.empty()) ConfigureServerName(url);
}

void CurlTransfer::ConfigureHeaders() {
  if (!host_.empty()) headers_ = curl_slist_append(headers_, ("Host: " + host_).c_str());
  for (const auto& [name, value] : call_->headers) {
    // An empty value needs its own spelling, or libcurl leaves the header out.
    std::string line = value.empty() ? name + ";" : name + ": " + value;
    headers_ = curl_slist_append(headers_, line.c_str());
  }
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
}

// libcurl verifies the name in the URL, so the URL gets the name, and the connection goes to the URL's host.
void CurlTransfer::ConfigureServerName(const std::string& text) {
  std::optional<Url> url = Url::Parse(text);
  if (!url || url->scheme() != "https") return;
  std::string target = fmt::format("::{}:{}", url->host(), url->port());
  connect_to_ = curl_slist_append(nullptr, target.c_str());
  curl_easy_setopt(easy_, CURLOPT_CONNECT_TO, connect_to_);
  host_ = fmt::format("{}:{}", url->host(), url->port());
  url->SetHost(call_->tls->server_name);
  curl_easy_setopt(easy_, CURLOPT_URL, url->text().c_str());
}

void CurlTransfer::ConfigureTls() {
  if (call_->tls == nullptr) return;
  const TlsSettings& tls = *call_->tls;
  auto set_pem = [this](CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    // The settings live as long as the call.
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};
    curl_easy_setopt(easy_, option, &blob);
  };
  if (!tls.verifies_peer) {
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!tls.ca_path.empty()) curl_easy_setopt(easy_, CURLOPT_CAINFO, tls.ca_path.c_str());
  bool has_own_authorities = !tls.ca_path.empty() || !tls.ca_pem.empty();
  if (has_own_authorities) curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);  // the system's
  if (!tls.certificate_path.empty()) curl_easy_setopt(easy_, CURLOPT_SSLCERT, tls.certificate_path.c_str());
  if (!tls.key_path.empty()) curl_easy_setopt(easy_, CURLOPT_SSLKEY, tls.key_path.c_str());
  set_pem(CURLOPT_CAINFO_BLOB, tls.ca_pem);
  set_pem(CURLOPT_SSLCERT_BLOB, tls.certificate_pem);
  set_pem(CURLOPT_SSLKEY_BLOB, tls.key_pem);
}

void CurlTransfer::ConfigureBody() {
  if (upload_) {
    curl_easy_setopt(easy_, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(upload_->size()));
    curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBuffer);
    curl_easy_setopt(easy_, CURLOPT_READFUNCTION, &CurlTransfer::OnUpload);
    curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  } else if (!call_->body.empty() || call_->method == "POST" || call_->method == "PUT") {
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_->body.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, call_->body.data());
  }
  if (call_->method == "HEAD") curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, call_->method.c_str());
}

// libcurl repeats of its own accord what was sent on a kept connection that ended without an answer. (Another
// transfer that joins a new connection of HTTP/2 makes it a kept one, so a new connection alone is not
// enough.)
void CurlTransfer::ConfigureRepetition() {
  curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, &CurlTransfer::OnSend);
  curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  if (call_->is_sent_once()) curl_easy_setopt(easy_, CURLOPT_FRESH_CONNECT, 1L);
}

Task<> CurlTransfer::Run() {
  WatchTime();
  multi_.Add(easy_, [this](CURLcode code) {
    result_ = code;
    progress_.Set();
  });
  while (!result_ && given_up_.empty()) {
    if (upload_ && upload_->wants_block()) {
      co_await upload_->ReadBlock();
      ResumeUpload();
      continue;
    }
    co_await progress_.Wait();
    progress_.Reset();
  }
  ThrowFailure();
  reply_.status = Status();
}

int CurlTransfer::Status() const {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

std::string CurlTransfer::Redirect() const {
  const char* url = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &url);
  return url == nullptr ? "" : url;
}

void CurlTransfer::ResumeUpload() {
  if (!is_paused_ || result_) return;
  is_paused_ = false;
  curl_easy_pause(easy_, CURLPAUSE_CONT);
}

std::size_t CurlTransfer::OnUpload(char* to, std::size_t size, std::size_t count, void* object) {
  auto* self = static_cast<CurlTransfer*>(object);
  self->last_sign_ = self->loop_.SteadyNow();
  std::size_t taken = self->upload_->Take(to, size * count);
  if (taken > 0 && self->upload_->is_at_end()) self->WatchTime();
  if (taken == 0 && !self->upload_->is_at_end()) {
    self->is_paused_ = true;
    return CURL_READFUNC_PAUSE;
  }
  self->progress_.Set();
  const auto& progress = self->call_->upload->progress;
  if (progress) progress(self->upload_->taken(), self->upload_->size());
  return taken;
}

// Called when the connection stands, before the request's first byte.
int CurlTransfer::OnSend(void* object, char*, char*, int, int) {
  auto* self = static_cast<CurlTransfer*>(object);
  // After an answer it is no repetition: the server wants the request in another form (417).
  bool is_repetition = self->is_sent_ && !self->has_header_;
  if (is_repetition && self->call_->is_sent_once()) {
    self->given_up_ = "the connection was closed without an answer";
    return CURL_PREREQFUNC_ABORT;
  }
  self->is_sent_ = true;
  self->has_header_ = false;
  return CURL_PREREQFUNC_OK;
}

std::size_t CurlTransfer::OnHeader(char* data, std::size_t size, std::size_t count, void* object) {
  auto* self = static_cast<CurlTransfer*>(object);
  self->last_sign_ = self->loop_.SteadyNow();
  return self->AddHeaderLine({data, size * count}) ? size * count : 0;
}

bool CurlTransfer::AddHeaderLine(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > kMaxHeaderBytes) return Refuse("the headers of the answer are too long");
  if (line.starts_with("HTTP/")) {  // of the last answer; others may be before it, "100 Continue"
    reply_.headers.clear();
    has_header_ = !line.starts_with("HTTP/1.1 1") && !line.starts_with("HTTP/2 1");
    WatchTime();
    return true;
  }
  std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  reply_.headers.emplace_back(Lower(Trim(line.substr(0, colon))), std::string(Trim(line.substr(colon + 1))));
  return true;
}

std::size_t CurlTransfer::OnBody(char* data, std::size_t size, std::size_t count, void* object) {
  auto* self = static_cast<CurlTransfer*>(object);
  self->last_sign_ = self->loop_.SteadyNow();
  return self->AddBody({data, size * count}) ? size * count : 0;
}

bool CurlTransfer::AddBody(std::string_view bytes) {
  if (call_->sink && Status() < 300)
    return call_->sink(bytes) || Refuse("the answer was not read to its end");
  if (reply_.body.size() + bytes.size() > call_->max_bytes)
    return Refuse(fmt::format("the answer is longer than {} bytes", call_->max_bytes));
  std::size_t size = reply_.body.size() + bytes.size();
  std::size_t shared = size - std::min(size, kOwnBytes);
  if (!multi_.TakeSpace(shared - shared_bytes_)) {
    return Refuse("the answers that arrive at the moment are too long together", Verdict::kRetry);
  }
  shared_bytes_ = shared;
  reply_.body.append(bytes);
  return true;
}

bool CurlTransfer::Refuse(std::string why, Verdict verdict) {
  given_up_ = std::move(why);
  given_up_verdict_ = verdict;
  return false;
}

Duration CurlTransfer::QuietLimit() const {
  const HttpTimeouts& limits = call_->timeouts;
  if (has_header_ || (upload_ && !upload_->is_at_end())) return limits.stall;
  return limits.connect + limits.answer;
}

void CurlTransfer::WatchTime() {
  if (timer_) loop_.clock().CancelTimer(*std::exchange(timer_, std::nullopt));
  SteadyTime now = loop_.SteadyNow();
  SteadyTime quiet_until = last_sign_ + QuietLimit();
  SteadyTime end = started_ + call_->timeouts.total;
  if (now >= end) return GiveUp("the answer was not complete in time");
  if (now >= quiet_until)
    return GiveUp(has_header_ ? "the answer stopped half way" : "no answer came in time");
  timer_ = loop_.clock().CallAt(std::min(quiet_until, end), [this] {
    timer_.reset();
    WatchTime();
  });
}

void CurlTransfer::GiveUp(std::string why) {
  given_up_ = std::move(why);
  progress_.Set();
}

void CurlTransfer::ThrowFailure() const {
  if (given_up_.empty() && result_ == CURLE_OK) return;
  Verdict verdict = given_up_verdict_;
  std::string why = given_up_;
  if (why.empty()) {
    verdict = IsLasting(*result_) && !is_sent_ ? Verdict::kInvalid : Verdict::kRetry;
    why = WithoutDuration(*error_text_ != '\0' ? error_text_ : curl_easy_strerror(*result_));
  }
  std::string message = fmt::format("{} {}: {}", call_->method, url_for_log_, why);
  if (given_up_.empty() && !is_sent_ && IsOfUnknownAuthority(easy_))
    throw UntrustedServer(std::move(message));
  throw HttpError(verdict, std::move(message), is_sent_,
                  given_up_.empty() && result_ == CURLE_COULDNT_RESOLVE_HOST);
}

}  // namespace nodepool::net
