#include "net/http/connection.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "net/http/http.h"

namespace nodepool::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr Duration kDeaf = std::chrono::seconds(1);

bool IsStranger(const Seat& seat) { return seat.proven_as.empty(); }

}  // namespace

// A network with two seats must not lose one to a stranger who has a network for each of his.
bool Seats::GoesBefore(const Seat& one, const Seat& other) const {
  auto rank = [this](const Seat& seat) {
    return std::tuple(std::max(seat.party->seats, limits_.fair_share), seat.awaits_peer);
  };
  return rank(one) != rank(other) ? rank(one) > rank(other) : one.since < other.since;
}

template <class May>
Seat* Seats::First(May may) const {
  Seat* first = nullptr;
  for (Seat* seat : seats_) {
    if (!may(*seat)) continue;
    if (first == nullptr || GoesBefore(*seat, *first)) first = seat;
  }
  return first;
}

void Seats::Count(Seat& seat) {
  bool is_stranger = IsStranger(seat);
  auto& parties = is_stranger ? networks_ : names_;
  seat.party = &parties[is_stranger ? seat.network : seat.proven_as];
  ++seat.party->seats;
  if (is_stranger) ++strangers_;
}

void Seats::Uncount(Seat& seat) {
  bool is_stranger = IsStranger(seat);
  if (is_stranger) --strangers_;
  if (--seat.party->seats > 0) return;
  auto& parties = is_stranger ? networks_ : names_;
  parties.erase(is_stranger ? seat.network : seat.proven_as);
}

void Seats::Remove(Seat& seat) {
  if (seat.party == nullptr) return;  // it was sent away
  Release(seat);
  Uncount(seat);
  seat.party = nullptr;
  seats_.remove(&seat);
}

void Seats::SendAway(Seat& seat) {
  Remove(seat);
  auto leave = std::move(seat.leave);
  if (leave) leave();
}

Seats::Ptr Seats::Enter(std::string network, std::string proven_as, SteadyTime now) {
  if (proven() >= limits_.proven) proven_as.clear();
  while (proven_as.empty() && strangers_ >= limits_.strangers) {
    Seat* first = First(IsStranger);
    auto own = networks_.find(network);
    std::size_t own_seats = own == networks_.end() ? 0 : own->second.seats;
    if (!limits_.replaces_own && first->party->seats <= own_seats + 1) return nullptr;
    SendAway(*first);
  }
  auto seat = Ptr(new Seat{std::move(network), std::move(proven_as), now}, [this](Seat* left) {
    Remove(*left);
    delete left;
  });
  seats_.push_back(seat.get());
  Count(*seat);
  return seat;
}

void Seats::Prove(Seat& seat, const std::string& name) {
  if (seat.party == nullptr || seat.proven_as == name) return;
  auto become = [this](Seat& changed, const std::string& other) {
    Uncount(changed);
    changed.proven_as = other;
    Count(changed);
  };
  become(seat, name);
  if (proven() <= limits_.proven) return;
  Seat* first = First([](const Seat& each) { return !IsStranger(each); });
  become(*first, "");
}

bool Seats::Hold(Seat& seat, std::size_t bytes, SteadyTime now) {
  if (bytes > limits_.held_bytes || seat.party == nullptr) return false;
  SteadyTime latest = IsStranger(seat) ? now - kDeaf : now;
  while (held_bytes_ + bytes > limits_.held_bytes) {
    Seat* first = First(
        [&](const Seat& each) { return IsStranger(each) && each.held_bytes > 0 && each.since <= latest; });
    if (first == nullptr) return false;
    SendAway(*first);
  }
  seat.held_bytes += bytes;
  held_bytes_ += bytes;
  return true;
}

void Seats::Release(Seat& seat) { held_bytes_ -= std::exchange(seat.held_bytes, 0); }

void Seats::Clear() {
  while (!seats_.empty()) SendAway(*seats_.front());
}

std::string NetworkOf(const std::string& address) {
  constexpr std::size_t kNetworkBytes = 8;
  boost::system::error_code failed;
  boost::asio::ip::address parsed = boost::asio::ip::make_address(address, failed);
  if (failed || !parsed.is_v6()) return address;
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

namespace {

// For what is still on its way to the client, and its answer.
constexpr Duration kFarewell = std::chrono::seconds(2);

}  // namespace

asio::ip::address Connection::PeerAddress() const {
  error_code gone;
  asio::ip::address peer = socket_.remote_endpoint(gone).address();
  bool is_mapped = peer.is_v6() && peer.to_v6().is_v4_mapped();
  return is_mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, peer.to_v6()) : peer;
}

void Connection::Close() {
  error_code ignored;
  socket_.close(ignored);
}

Task<error_code> Connection::BeginTls(asio::ssl::context& context) {
  tls_.emplace(socket_, context);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await tls_->async_handshake(asio::ssl::stream_base::server, token);
  co_return error;
}

Task<> Connection::Finish(Loop& loop) {
  error_code ignored;
  if (tls_) {
    HangUpLater late(loop, socket_, kFarewell);
    co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
  }
  socket_.shutdown(Socket::shutdown_send, ignored);
}

namespace {

namespace ssl = boost::asio::ssl;
using std::chrono::hours;

constexpr Duration kCheckInterval =
    std::chrono::minutes(1);                            // beside FileWatch, which does not see everything
constexpr Duration kWriting = std::chrono::seconds(2);  // max. time between writing the two files
constexpr Duration kRenewalTime = hours(14 * 24);
constexpr Duration kWarningInterval = hours(24);

// RFC 7301; a client that offers none of it is sent away by the alert that it names.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* found = nullptr;
  int result =
      ::SSL_select_next_proto(&found, chosen_size, kHttp11, sizeof(kHttp11) - 1, offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::unique_ptr<ssl::context> MakeContext() {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  ::SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);  // tickets resume sessions, and cost no memory
  ::SSL_CTX_set_alpn_select_cb(native, &ChooseProtocol, nullptr);
  return context;
}

WallTime TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  ::ASN1_TIME_to_tm(time, &parts);
  return FromSeconds(static_cast<double>(::timegm(&parts)));
}

void Sign(EVP_PKEY* key) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::array<unsigned char, 64> text = {};
  std::string signature(static_cast<std::size_t>(EVP_PKEY_get_size(key)), '\0');
  std::size_t size = signature.size();
  if (::EVP_DigestSignInit_ex(digest.get(), nullptr, nullptr, nullptr, nullptr, key, nullptr) != 1) return;
  ::EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, text.data(),
                   text.size());
}

// The shortest of some, since other programs may take the processor meanwhile.
Duration SigningTime(Loop& loop, EVP_PKEY* key) {
  Duration shortest = Duration::max();
  for (int i = 0; i < 3; ++i) {
    SteadyTime start = loop.SteadyNow();
    Sign(key);
    shortest = std::min(shortest, loop.SteadyNow() - start);
  }
  return shortest;
}

}  // namespace

ServerCertificate::ServerCertificate(Loop& loop, CertificateFiles files, std::string setting,
                                     log::Logger logger)
    : loop_(loop),
      files_(std::move(files)),
      setting_(std::move(setting)),
      logger_(std::move(logger)),
      loaded_(Load()),
      checks_(
          loop, "the web server's certificate", {}, [this] { return Check(); }, logger_),
      watch_(loop, {std::filesystem::absolute(files_.cert), std::filesystem::absolute(files_.key)},
             [this] { checks_.Wake(); }) {}

std::string ServerCertificate::Identity() const {
  return FileIdentity(files_.cert) + " " + FileIdentity(files_.key);
}

ServerCertificate::Loaded ServerCertificate::Load() const {
  Loaded loaded;
  loaded.identity = Identity();  // first: the next check sees a change meanwhile
  loaded.context = MakeContext();
  UseCertificate(*loaded.context, files_, setting_);
  SSL_CTX* native = loaded.context->native_handle();
  const X509* certificate = ::SSL_CTX_get0_certificate(native);
  loaded.begins = TimeOf(::X509_get0_notBefore(certificate));
  loaded.ends = TimeOf(::X509_get0_notAfter(certificate));
  loaded.signing_time = SigningTime(loop_, ::SSL_CTX_get0_privatekey(native));
  return loaded;
}

// Returns when the next check is due.
SteadyTime ServerCertificate::Check() {
  SteadyTime now = loop_.SteadyNow();
  bool is_changed = Identity() != loaded_.identity;
  try {
    if (is_changed) {
      loaded_ = Load();
      warned_at_.reset();
      logger_.Info("The web server's certificate was read again from {}; it ends at {}", files_.cert,
                   Iso8601(loaded_.ends));
    }
    faulty_since_.reset();
    reported_.clear();
  } catch (const Error& fault) {
    if (!faulty_since_) faulty_since_ = now;
    if (now < *faulty_since_ + kWriting) return *faulty_since_ + kWriting;
    Report(fault.message());
  }
  WarnOfDates();
  return now + kCheckInterval;
}

void ServerCertificate::Report(const std::string& fault) {
  if (fault == reported_) return;
  reported_ = fault;
  logger_.Error("The web server's changed certificate cannot be used, the previous one stays in use: {}",
                fault);
}

void ServerCertificate::WarnOfDates() {
  WallTime now = loop_.Now();
  bool is_good = loaded_.begins <= now && now < loaded_.ends - kRenewalTime;
  bool is_warned = warned_at_ && loop_.SteadyNow() < *warned_at_ + kWarningInterval;
  if (is_good || is_warned) return;
  warned_at_ = loop_.SteadyNow();
  if (now < loaded_.begins) {
    logger_.Warning("The web server's certificate {} is not valid before {}: clients refuse it until then",
                    files_.cert, Iso8601(loaded_.begins));
  } else if (now >= loaded_.ends) {
    logger_.Warning(
        "The web server's certificate {} has ended at {}: clients refuse it; replace it and its key",
        files_.cert, Iso8601(loaded_.ends));
  } else {
    logger_.Warning("The web server's certificate {} ends soon, at {}: replace it and its key", files_.cert,
                    Iso8601(loaded_.ends));
  }
}

namespace {

using asio::ip::tcp;

// Answers whatever the client has sent with the status and a line of text, in plain HTTP, as far as this is
// possible without waiting, and closes the connection.
// The bytes that the peer has sent are read first, since a close would otherwise discard the answer.
void Refuse(tcp::socket& socket, int status, std::string_view text) {
  std::string answer = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}\n",
      status, HttpReason(status), text.size() + 1, text);
  boost::system::error_code ignored;
  char sent[4096];
  socket.non_blocking(true, ignored);
  socket.read_some(asio::buffer(sent), ignored);
  socket.write_some(asio::buffer(answer), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  socket.close(ignored);
}

}  // namespace

using boost::system::error_code;

namespace {

// Between the beginnings of two handshakes. A handshake costs a signature and some tenths of a millisecond.
constexpr Duration kShortestInterval = std::chrono::milliseconds(1);
constexpr int kSignaturesPerInterval = 4;
constexpr std::size_t kRecordHead = 5;  // type, version and length of a TLS record (RFC 8446, 5.1)
constexpr std::size_t kLongestRecord = kRecordHead + 16384;

// Waits for so many bytes of the client and reads the first ones, which stay unread. False: they do not come.
Task<bool> HasArrived(tcp::socket& socket, std::size_t bytes, asio::mutable_buffer first) {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  socket.set_option(tcp::socket::receive_low_watermark(static_cast<int>(bytes)), error);
  co_await socket.async_wait(tcp::socket::wait_read, token);
  if (error || socket.available(error) < bytes || error) co_return false;
  socket.receive(first, tcp::socket::message_peek, error);
  co_return !error;
}

std::size_t SizeOfRecord(const std::array<unsigned char, kRecordHead>& head) {
  return std::min(kLongestRecord, kRecordHead + (std::size_t{head[3]} << 8) + head[4]);
}

}  // namespace

TlsAcceptor::TlsAcceptor(Loop& loop, CertificateFiles files, std::string setting, log::Logger logger)
    : loop_(loop),
      logger_(logger),
      certificate_(loop, std::move(files), std::move(setting), logger),
      failures_(loop, [this](std::uint64_t more) {
        logger_.Info("{} more TLS handshakes failed in the last minute; the level DEBUG shows each", more);
      }) {}

Task<bool> TlsAcceptor::Begin(Connection& connection, std::string network) {
  tcp::socket& socket = connection.socket();
  std::array<unsigned char, kRecordHead> head{};
  bool has_come = co_await HasArrived(socket, 1, asio::buffer(head));
  if (!has_come) co_return false;
  if (!IsTlsByte(static_cast<char>(head[0]))) {
    Refuse(socket, 400, "This port speaks HTTPS only: begin the URL with https:// in place of http://");
    co_return false;
  }
  // A client that does not go on takes no turn.
  has_come = co_await HasArrived(socket, kRecordHead, asio::buffer(head));
  if (has_come) has_come = co_await HasArrived(socket, SizeOfRecord(head), asio::buffer(head));
  if (!has_come) co_return false;
  error_code error;
  socket.set_option(tcp::socket::receive_low_watermark(1), error);
  bool has_turn = co_await AwaitTurn(connection, std::move(network));
  if (!has_turn) co_return false;
  error = co_await connection.BeginTls(certificate_.context());
  if (error) ReportFailure(connection, error);
  co_return !error;
}

Task<bool> TlsAcceptor::AwaitTurn(Connection& connection, std::string network) {
  std::shared_ptr<Gate> gate = networks_[network].lock();
  if (!gate) networks_[network] = gate = std::make_shared<Gate>(1);
  ScopeExit left([&] {
    if (gate.use_count() == 1) networks_.erase(network);
  });
  Gate::Pass pass = co_await gate->Enter();
  co_return co_await AwaitTurnOfAll(connection);
}

// False: the connection was closed meanwhile. Its turn takes no time then, so whoever opens connections
// faster than they get turns delays only those that are open.
Task<bool> TlsAcceptor::AwaitTurnOfAll(Connection& connection) {
  Gate::Pass pass = co_await turns_.Enter();
  if (connection.is_open() && loop_.SteadyNow() < next_turn_) co_await loop_.SleepUntil(next_turn_);
  if (!connection.is_open()) co_return false;
  next_turn_ =
      loop_.SteadyNow() + std::max(kShortestInterval, kSignaturesPerInterval * certificate_.signing_time());
  co_return true;
}

void TlsAcceptor::ReportFailure(const Connection& connection, const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return;  // it has hung up, or was hung up on
  log::Level level = failures_.Admits() ? log::Level::kInfo : log::Level::kDebug;
  if (logger_.Enabled(level))
    logger_.Write(level, fmt::format("A TLS handshake with {} failed: {}",
                                     connection.PeerAddress().to_string(), error.message()));
}

}  // namespace nodepool::net
