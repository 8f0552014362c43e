// The task of a WireSession: connecting, handshake, reading, staying alive.
#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/text.h"
#include "zk/wire/wire_connection.h"
#include "zk/wire/wire_session.h"

namespace nodepool::zk {

using boost::asio::ip::tcp;
using protocol::OpCode;

namespace {

// A listing of many children may be far larger than any request.
constexpr std::size_t kMaxAnswer = 64 * 1024 * 1024;
constexpr std::size_t kMaxSetWatches = 128 * 1024;
constexpr Duration kTroubleLogInterval = std::chrono::seconds(10);
constexpr Duration kShortestAttempt = std::chrono::seconds(1);

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

template <class WriteBody>
void AppendFrame(std::string& out, WriteBody write_body) {
  std::size_t start = out.size();
  JuteWriter writer(out);
  writer.Int(0);
  write_body(writer);
  writer.PatchInt(start, static_cast<std::int32_t>(out.size() - start - sizeof(std::int32_t)));
}

// Throws what a certificate file has to do with a failure, if anything.
void ExplainTls(const Failure& failure, WireConnection& connection, const std::optional<TlsFiles>& files) {
  if (failure.verdict() != Verdict::kRetry || !files) return;
  std::optional<std::string> why =
      ExplainTlsFault(connection.fault(), connection.certificate_fault(), *files);
  if (why) throw Error(Verdict::kRetry, *why);
}

// Throws the failure of a handshake, with what it usually means.
[[noreturn]] void ExplainRefusal(const Failure& failure, bool has_tls) {
  if (failure.verdict() != Verdict::kRetry) failure.Rethrow();
  throw Error(Verdict::kRetry,
              fmt::format("{} during the handshake ({}it has no quorum, or is behind what was already read)",
                          failure.message(), has_tls ? "" : "its port is for TLS, "));
}

}  // namespace

Task<> WireSession::Run() {
  auto self = shared_from_this();
  while (!is_closing_) {
    Established established = co_await Connect();
    if (is_closing_) break;
    // An expired session is answered with a time-out of 0. Another id is that of the new session for which
    // Connect asked as a proof (coordination.md 2.5).
    bool is_expired = established.response.timeout_ms <= 0 ||
                      (session_id_ != 0 && established.response.session_id != session_id_);
    if (is_expired) {
      established.connection->Close("the session has expired");
      SessionLost(IsSessionRefusedForGood()
                      ? fmt::format("is taken up by no server, for longer than its time-out of {} s (was the "
                                    "servers' state restored from a back-up, or lost?)",
                                    Seconds(session_timeout_))
                      : "has expired");
    } else {
      Adopt(std::move(established));
      std::string why = co_await Serve(connection_);
      ConnectionLost(why);
    }
    if (is_closing_) break;
    // Tasks that the loss of the session ends get this long before a new one begins.
    co_await loop_.SleepFor(backoff_.Next());
    if (state_ == SessionState::kLost) SetState(SessionState::kConnecting);
  }
}

Task<WireSession::Established> WireSession::Connect() {
  while (true) {
    std::vector<std::string> problems;
    std::vector<tcp::endpoint> endpoints =
        co_await ResolveServers(loop_, random_, options_.servers, problems);
    // The server just lost may hang; the other ones answer sooner.
    auto is_other = [this](const tcp::endpoint& endpoint) { return endpoint != last_server_; };
    std::stable_partition(endpoints.begin(), endpoints.end(), is_other);
    std::uint64_t refusals = refusals_;
    auto established = co_await AskServers(endpoints, Claim::kOwnSession, problems);
    if (refusals == refusals_) refused_since_.reset();
    if (refusals != refusals_ && !refused_since_) refused_since_ = loop_.SteadyNow();
    if (!established && IsSessionRefusedForGood()) {
      // One that accepts us without our session proves that it refuses only that: it has seen less than we
      // have, and nothing else would end the session. One without a quorum refuses everything; the session
      // may live.
      std::vector<std::string> known;
      established = co_await AskServers(endpoints, Claim::kNewSession, known);
    }
    if (established) co_return std::move(*established);
    LogTrouble(problems);
    co_await loop_.SleepFor(backoff_.Next());
  }
}

// One after the other, until one accepts.
Task<std::optional<WireSession::Established>> WireSession::AskServers(
    const std::vector<tcp::endpoint>& endpoints, Claim claim, std::vector<std::string>& problems) {
  for (const tcp::endpoint& endpoint : endpoints) {
    SteadyTime deadline = loop_.SteadyNow() + AttemptTimeout(endpoints.size());
    Outcome<Established> established =
        co_await Attempt(WithDeadline(loop_, deadline, "connecting", ShakeHands(endpoint, claim)));
    if (is_closing_) throw Error(Verdict::kCancelled, "closing");
    if (established) co_return std::move(*established);
    problems.push_back(
        fmt::format("{}: {}", WireConnection::NameOf(endpoint), established.error().message()));
  }
  co_return std::nullopt;
}

bool WireSession::IsSessionRefusedForGood() const {
  return session_id_ != 0 && refused_since_ && loop_.SteadyNow() - *refused_since_ >= session_timeout_;
}

// Every server is to be tried before the session expires.
Duration WireSession::AttemptTimeout(std::size_t endpoints) const {
  if (session_id_ == 0 || endpoints < 2) return options_.connect_timeout;
  Duration share = session_timeout_ / 3;
  return std::min(options_.connect_timeout, std::max(share, kShortestAttempt));
}

Task<WireSession::Established> WireSession::ShakeHands(tcp::endpoint endpoint, Claim claim) {
  Established established;
  auto connection = std::make_shared<WireConnection>(loop_, tls_.get(), endpoint, kMaxAnswer);
  established.connection = connection;
  Outcome<> opened = co_await Attempt(connection->Open());
  if (!opened) {
    ExplainTls(opened.error(), *connection, options_.tls);
    opened.error().Rethrow();
  }
  protocol::ConnectRequest request;
  request.timeout_ms = static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.session_timeout).count());
  bool is_new = claim == Claim::kNewSession || session_id_ == 0;
  request.last_zxid = is_new ? 0 : last_zxid_;
  request.session_id = is_new ? 0 : session_id_;
  request.password = is_new ? options_.opening_password : password_;
  AppendFrame(connection->out(), [&](JuteWriter& out) { protocol::Write(out, request); });
  connection->Flush();
  Outcome<std::string> frame = co_await Attempt(connection->ReadFrame());
  if (!frame) {
    // Servers refuse a session without a word, by closing the connection (coordination.md 2.5).
    if (frame.error().verdict() == Verdict::kRetry) ++refusals_;
    ExplainTls(frame.error(), *connection, options_.tls);
    ExplainRefusal(frame.error(), tls_ != nullptr);
  }
  JuteReader body(*frame);
  established.response = protocol::ReadConnectResponse(body);
  if (established.response.read_only) {
    throw Error(Verdict::kRetry, "the server is read-only, cut off from the others of its ensemble");
  }
  co_return established;
}

void WireSession::Adopt(Established established) {
  bool is_new = session_id_ == 0;
  connection_ = std::move(established.connection);
  last_server_ = connection_->endpoint();
  session_timeout_ = std::chrono::milliseconds(established.response.timeout_ms);
  session_id_ = established.response.session_id;
  password_ = established.response.password;
  if (is_new) ++generation_;
  refused_since_.reset();
  backoff_.Reset();
  next_trouble_log_ = SteadyTime::min();
  log_.Info("{} ZooKeeper at {}, session 0x{:x}, timeout {} s",
            is_new ? "Connected to" : "Connected again to", connection_->name(),
            static_cast<std::uint64_t>(session_id_), Seconds(session_timeout_));
  // First: what has waited may need the rights that it gives.
  SendAuth();
  RearmWatches();
  SendWaiting();
  ping_interval_ = NextPingInterval();
  KeepAlive();
  // Last: listeners send operations of their own, which go behind those that have waited.
  SetState(SessionState::kConnected);
}

void WireSession::SendAuth() {
  std::optional<DigestAuth> digest = options_.find_digest ? options_.find_digest() : options_.digest;
  if (!digest) return;
  AppendFrame(connection_->out(), [&digest](JuteWriter& out) {
    protocol::WriteHeader(out, protocol::kAuthXid, OpCode::kAuth);
    protocol::WriteDigestAuth(out, digest->user, digest->password);
  });
}

// Sent before every other operation, so that whatever is read from now on is watched.
void WireSession::RearmWatches() {
  protocol::WatchPaths paths = watches_->Paths();
  for (const std::string& watches :
       protocol::SetWatchesBodies(paths, options_.chroot, last_zxid_, kMaxSetWatches)) {
    AppendFrame(connection_->out(), [&](JuteWriter& out) {
      protocol::WriteHeader(out, protocol::kSetWatchesXid, OpCode::kSetWatches2);
      out.Raw(watches);
    });
  }
}

// Ends with the reason why the connection ended.
Task<std::string> WireSession::Serve(std::shared_ptr<WireConnection> connection) {
  try {
    while (true) {
      co_await connection->Fill();
      while (auto frame = connection->TakeFrame()) {
        HandleFrame(*frame);
        if (connection->is_closed()) break;
      }
    }
  } catch (...) {
    co_return MessageOf(std::current_exception());
  }
}

void WireSession::ConnectionLost(const std::string& why) {
  StopKeepAlive();
  connection_->Close(why);
  std::string name = connection_->name();
  connection_.reset();
  if (!is_closing_) {
    log_.Warning("Lost the connection to ZooKeeper at {}: {}", name, why);
    FailSent(Verdict::kRetry, fmt::format("lost the connection to ZooKeeper at {}: {}", name, why));
  }
  sent_.clear();
  if (!is_closing_) SetState(SessionState::kSuspended);
}

void WireSession::SessionLost(const std::string& why) {
  log_.Warning("The ZooKeeper session 0x{:x} {}; its locks and ephemeral znodes are gone",
               static_cast<std::uint64_t>(session_id_), why);
  session_id_ = 0;
  refused_since_.reset();
  password_.clear();
  // The servers may have less than the old session has read (coordination.md 2.5).
  last_zxid_ = 0;
  FailWaiting(Verdict::kLostSession, "the ZooKeeper session has expired");
  SetState(SessionState::kLost);
}

void WireSession::LogTrouble(const std::vector<std::string>& problems) {
  if (options_.on_trouble) return options_.on_trouble(Join(problems, "; "));
  if (loop_.SteadyNow() < next_trouble_log_) return;
  next_trouble_log_ = loop_.SteadyNow() + kTroubleLogInterval;
  log_.Warning("Retrying zookeeper connection; no server can be used: {}", Join(problems, "; "));
}

// Runs whenever a ping may be due or the server may have been silent for too long:
// nothing heard for two thirds of the session's timeout ends the connection, and a
// ping goes out when nothing was sent for half of that.
void WireSession::KeepAlive() {
  SteadyTime now = loop_.SteadyNow();
  Duration read_timeout = session_timeout_ * 2 / 3;
  SteadyTime dead_at = connection_->last_received() + read_timeout;
  if (now >= dead_at) {
    if (!connection_->HasUnreadBytes()) {
      return connection_->Close(
          fmt::format("it has been silent for {:.1f} s", Seconds(now - dead_at + read_timeout)));
    }
    // This process itself was stopped or busy; the bytes are about to be read.
    dead_at = now + read_timeout / 10;
  }
  SteadyTime ping_at = connection_->last_sent() + ping_interval_;
  if (now >= ping_at) {
    AppendFrame(connection_->out(),
                [](JuteWriter& out) { protocol::WriteHeader(out, protocol::kPingXid, OpCode::kPing); });
    connection_->Flush();
    ping_interval_ = NextPingInterval();
    ping_at = now + ping_interval_;
  }
  keep_alive_timer_ = loop_.clock().CallAt(std::min(ping_at, dead_at), [this] { KeepAlive(); });
}

// Half the read timeout, less some jitter.
Duration WireSession::NextPingInterval() {
  double interval = Seconds(session_timeout_) / 3;
  interval -= std::min(random_.Between(0.01, 0.40), interval / 4);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(interval));
}

void WireSession::StopKeepAlive() {
  if (keep_alive_timer_ != 0) loop_.clock().CancelTimer(std::exchange(keep_alive_timer_, 0));
}

}  // namespace nodepool::zk
