#include "zk/wire/wire_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/endian/conversion.hpp>
#include <cstring>

#include "base/error.h"
#include "base/tls_files.h"

namespace nodepool::zk {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kBufferSize = 64 * 1024;
// Small on a server, where clients are many and mostly send little.
constexpr std::size_t kFirstBufferSize = 4 * 1024;
// Buffers that a large record made larger than this are shrunk afterwards.
constexpr std::size_t kRetained = 1024 * 1024;
constexpr std::size_t kRetainedOnServer = 16 * 1024;

}  // namespace

void WireConnection::ThrowIf(const error_code& error) {
  if (!error) return;
  fault_ = error;
  if (error == asio::error::operation_aborted) throw Error(Verdict::kCancelled, "cancelled");
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    throw Error(Verdict::kRetry, "the server closed the connection");
  }
  throw Error(Verdict::kRetry, error.message());
}

std::string WireConnection::NameOf(const Endpoint& endpoint) {
  std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

WireConnection::WireConnection(Loop& loop, asio::ssl::context* tls, Endpoint endpoint, std::size_t max_frame)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      name_(NameOf(endpoint_)),
      socket_(loop.context()),
      max_frame_(max_frame),
      retained_(kRetained),
      in_(kBufferSize, '\0'),
      last_sent_(loop.SteadyNow()),
      last_received_(last_sent_) {
  if (tls) tls_.emplace(socket_, *tls);
}

WireConnection::WireConnection(Loop& loop, asio::ssl::context* tls, asio::ip::tcp::socket accepted,
                               std::size_t max_frame)
    : loop_(loop),
      socket_(std::move(accepted)),
      max_frame_(max_frame),
      retained_(kRetainedOnServer),
      in_(kFirstBufferSize, '\0'),
      last_sent_(loop.SteadyNow()),
      last_received_(last_sent_) {
  error_code ignored;
  endpoint_ = socket_.remote_endpoint(ignored);
  name_ = NameOf(endpoint_);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (tls) tls_.emplace(socket_, *tls);
}

Task<> WireConnection::Accept() {
  auto self = shared_from_this();
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  if (tls_) co_await tls_->async_handshake(asio::ssl::stream_base::server, token);
  if (is_closed()) throw Error(Verdict::kRetry, close_reason_);
  ThrowIf(error);
}

Task<> WireConnection::WaitUntilSent() {
  auto self = shared_from_this();
  while (unsent() > 0 && !is_closed()) co_await sent_.Wait();
  if (is_closed()) throw Error(Verdict::kRetry, close_reason_);
}

Task<> WireConnection::Open() {
  auto self = shared_from_this();
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await socket_.async_connect(endpoint_, token);
  if (!error) socket_.set_option(asio::ip::tcp::no_delay(true), error);
  if (!error && tls_) co_await tls_->async_handshake(asio::ssl::stream_base::client, token);
  ThrowIf(error);
  last_sent_ = last_received_ = loop_.SteadyNow();
}

void WireConnection::Flush() {
  if (is_flush_due_ || !being_written_.empty()) return;
  is_flush_due_ = true;
  asio::post(loop_.context(), [self = shared_from_this()] {
    self->is_flush_due_ = false;
    self->WriteOut();
  });
}

void WireConnection::WriteOut() {
  if (is_closed() || out_.empty()) return;
  being_written_.swap(out_);
  last_sent_ = loop_.SteadyNow();
  auto on_written = [self = shared_from_this()](error_code error, std::size_t) { self->OnWritten(error); };
  auto bytes = asio::buffer(being_written_);
  if (tls_) {
    asio::async_write(*tls_, bytes, std::move(on_written));
  } else {
    asio::async_write(socket_, bytes, std::move(on_written));
  }
}

void WireConnection::OnWritten(error_code error) {
  being_written_.clear();
  if (being_written_.capacity() > retained_) being_written_.shrink_to_fit();
  if (error) return Close(error.message());
  WriteOut();
  if (unsent() == 0) sent_.NotifyAll();
}

std::optional<std::string_view> WireConnection::TakeFrame() {
  if (end_ - begin_ < kLengthSize) return std::nullopt;
  std::int32_t length = boost::endian::load_big_s32(reinterpret_cast<const unsigned char*>(&in_[begin_]));
  if (length < 0 || static_cast<std::size_t>(length) > max_frame_) {
    throw Error(Verdict::kFail,
                fmt::format("malformed frame: a length of {} bytes (is it a ZooKeeper port?)", length));
  }
  auto size = static_cast<std::size_t>(length);
  if (end_ - begin_ < kLengthSize + size) return std::nullopt;
  std::string_view frame(&in_[begin_ + kLengthSize], size);
  begin_ += kLengthSize + size;
  return frame;
}

// The buffer grows with the bytes that arrive, not with the length that a server
// announces.
void WireConnection::MakeRoom() {
  std::memmove(in_.data(), &in_[begin_], end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == in_.size()) {
    in_.resize(in_.size() * 2);
  } else if (std::size_t small = std::min(kBufferSize, retained_); in_.size() > retained_ && end_ < small) {
    in_.resize(small);
    in_.shrink_to_fit();
  }
}

Task<> WireConnection::Fill() {
  auto self = shared_from_this();
  MakeRoom();
  auto room = asio::buffer(&in_[end_], in_.size() - end_);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  std::size_t count = 0;
  if (is_closed()) {
    error = asio::error::operation_aborted;
  } else if (tls_) {
    count = co_await tls_->async_read_some(room, token);
  } else {
    count = co_await socket_.async_read_some(room, token);
  }
  if (is_closed()) throw Error(Verdict::kRetry, close_reason_);
  ThrowIf(error);
  end_ += count;
  last_received_ = loop_.SteadyNow();
}

Task<std::string> WireConnection::ReadFrame() {
  auto self = shared_from_this();
  while (true) {
    std::optional<std::string_view> frame = TakeFrame();
    if (frame) co_return std::string(*frame);
    co_await Fill();
  }
}

void WireConnection::Close(std::string reason) {
  if (is_closed()) return;
  close_reason_ = reason.empty() ? "closed" : std::move(reason);
  std::string().swap(out_);  // an assignment would keep its memory
  error_code ignored;
  socket_.close(ignored);
  sent_.NotifyAll();
}

long WireConnection::certificate_fault() {
  return tls_ ? SSL_get_verify_result(tls_->native_handle()) : X509_V_OK;
}

bool WireConnection::HasUnreadBytes() {
  error_code ignored;
  return socket_.is_open() && socket_.available(ignored) > 0;
}

namespace {

constexpr const char* kSetting = "zookeeper-tls";

std::unique_ptr<ssl::context> Load(const TlsFiles& files, ssl::context::method method) {
  auto context = std::make_unique<ssl::context>(method);
  UseCertificate(*context, {files.cert, files.key}, kSetting);
  UseAuthorities(*context, files.ca, kSetting);
  return context;
}

// Alerts by which a server says that it does not take our certificate.
constexpr std::array kCertificateAlerts = {
    SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,      SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
    SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,  SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
    SSL_R_TLSV1_ALERT_ACCESS_DENIED,        SSL_R_TLSV1_ALERT_UNKNOWN_CA,
    SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED};

bool IsOutOfDate(long certificate_fault) {
  return certificate_fault == X509_V_ERR_CERT_HAS_EXPIRED ||
         certificate_fault == X509_V_ERR_CERT_NOT_YET_VALID;
}

}  // namespace

std::optional<std::string> ExplainTlsFault(const error_code& fault, long certificate_fault,
                                           const TlsFiles& files) {
  if (fault.category() != boost::asio::error::get_ssl_category()) return std::nullopt;
  int reason = ERR_GET_REASON(static_cast<unsigned long>(fault.value()));
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    const char* words = X509_verify_cert_error_string(certificate_fault);
    if (IsOutOfDate(certificate_fault))
      return fmt::format("the server's certificate is of no use: {}", words);
    return fmt::format("the server's certificate is not signed by zookeeper-tls.ca ({}): {}", files.ca,
                       words);
  }
  if (std::ranges::find(kCertificateAlerts, reason) == kCertificateAlerts.end()) return std::nullopt;
  return fmt::format("the server does not trust zookeeper-tls.cert ({}): {}", files.cert, fault.message());
}

std::unique_ptr<ssl::context> MakeTlsContext(const TlsFiles& files) {
  auto context = Load(files, ssl::context::tls_client);
  context->set_default_verify_paths();
  context->set_verify_mode(ssl::verify_peer);
  return context;
}

std::unique_ptr<ssl::context> MakeServerTlsContext(const TlsFiles& files) {
  auto context = Load(files, ssl::context::tls_server);
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return context;
}

namespace {

void Shuffle(Random& random, std::vector<tcp::endpoint>& endpoints) {
  for (std::size_t i = endpoints.size(); i > 1; --i) std::swap(endpoints[i - 1], endpoints[random.Below(i)]);
}

// "[::1]" as some users write it.
std::string WithoutBrackets(const std::string& host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Task<std::vector<tcp::endpoint>> ResolveServers(Loop& loop, Random& random, std::vector<HostPort> servers,
                                                std::vector<std::string>& problems) {
  std::vector<tcp::endpoint> endpoints;
  tcp::resolver resolver(loop.context());
  for (const HostPort& server : servers) {
    std::string host = WithoutBrackets(server.host);
    error_code error;
    auto address = asio::ip::make_address(host, error);
    if (!error) {
      endpoints.emplace_back(address, static_cast<std::uint16_t>(server.port));
      continue;
    }
    auto token = asio::redirect_error(asio::use_awaitable, error);
    auto found = co_await resolver.async_resolve(host, std::to_string(server.port), token);
    if (error == asio::error::operation_aborted) throw Error(Verdict::kCancelled, "cancelled");
    if (error) problems.push_back(fmt::format("{}: {}", server.host, error.message()));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  // Names may share an address, which is asked once.
  std::sort(endpoints.begin(), endpoints.end());
  endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
  Shuffle(random, endpoints);
  co_return endpoints;
}

}  // namespace nodepool::zk
