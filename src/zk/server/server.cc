#include "zk/server/server.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "async/task.h"
#include "base/error.h"
#include "zk/server/journal.h"
#include "zk/server/request.h"
#include "zk/wire/wire_connection.h"

namespace nodepool::zk::server {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr Duration kDiskRetry = std::chrono::seconds(1);
constexpr int kRetriesPerLogLine = 30;

std::int64_t FirstSession(WallTime now) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() << 16;
}

}  // namespace

Server::Server(Loop& loop, BlockingPool& pool, ServerOptions options)
    : loop_(loop),
      pool_(pool),
      options_(std::move(options)),
      logger_("nodepool.zk.Server"),
      client_warnings_(loop,
                       [this](std::uint64_t more) {
                         logger_.Warning(
                             "{} more ZooKeeper clients were refused or disconnected in the last "
                             "minute; the level DEBUG shows each",
                             more);
                       }),
      engine_(options_.limits),
      clock_(loop, [this](std::int64_t session) { Expire(session); }),
      last_session_(FirstSession(loop.Now())),
      tasks_(loop, logger_) {
  engine_.OnEvent([this](ServerWatches::ConnectionId connection_id, const WatchEvent& event, const Acl* acl) {
    Deliver(connection_id, event, acl);
  });
}

Server::~Server() = default;

Task<> Server::Start() {
  if (!options_.journal.empty()) {
    auto load = [this] {
      journal_ = std::make_unique<Journal>(options_.journal);
      return journal_->Load();
    };
    Journal::Contents contents = co_await OnBlockingPool(pool_, load);
    engine_.Restore(std::move(contents.sessions), std::move(contents.znodes), contents.zxid);
  }
  for (const auto& [id, session] : engine_.sessions()) {
    last_session_ = std::max(last_session_, id);
    clock_.Start(id, std::chrono::milliseconds(session.timeout_ms));
  }
  durable_ = engine_.change_count();
  CloseOwnSessions();
  if (options_.tls) tls_ = MakeServerTlsContext(*options_.tls);
  if (options_.port >= 0) Listen(plain_acceptor_, options_.address, options_.port, nullptr);
  if (tls_ && options_.tls_port >= 0)
    Listen(tls_acceptor_, options_.tls_address, options_.tls_port, tls_.get());
  tasks_.Spawn("keep the ZooKeeper tree on disk", KeepOnDisk());
  tasks_.Spawn("delete empty containers", DeleteContainers());
  tasks_.Spawn("free watches", FreeWatches());
  AfterChange();
}

void Server::Listen(std::optional<Acceptor>& acceptor, const std::string& address, int port,
                    asio::ssl::context* tls) {
  std::string place = fmt::format("{} port {}", address, port);
  try {
    tcp::endpoint endpoint(asio::ip::make_address(address), static_cast<std::uint16_t>(port));
    acceptor.emplace(loop_.context());
    acceptor->open(endpoint.protocol());
    acceptor->set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.address().is_v6()) acceptor->set_option(asio::ip::v6_only(false));
    acceptor->bind(endpoint);
    acceptor->listen();
  } catch (const boost::system::system_error& fault) {
    throw Error(
        Verdict::kInvalid,
        fmt::format("the embedded ZooKeeper server cannot listen on {}: {}; set embedded-zookeeper.{}port",
                    place, fault.code().message(), tls != nullptr ? "tls." : ""));
  }
  logger_.Info("The embedded ZooKeeper server listens on {} port {}{}", address,
               acceptor->local_endpoint().port(), tls != nullptr ? " with TLS" : "");
  tasks_.Spawn("accept ZooKeeper clients", Accept(*acceptor, tls));
}

int Server::port() const { return plain_acceptor_ ? plain_acceptor_->local_endpoint().port() : -1; }
int Server::tls_port() const { return tls_acceptor_ ? tls_acceptor_->local_endpoint().port() : -1; }

Task<> Server::Stop() {
  boost::system::error_code ignored;
  if (plain_acceptor_) plain_acceptor_->close(ignored);
  if (tls_acceptor_) tls_acceptor_->close(ignored);
  for (auto& [connection_id, connection] : connections_) connection->wire().Close("the server stops");
  co_await tasks_.Stop();
  if (!journal_) co_return;
  auto finish = [this, rest = engine_.TakeChanges()] {
    std::unique_ptr<Journal> journal = std::move(journal_);
    if (!writing_.empty()) journal->Write(writing_);
    if (!rest.empty()) journal->Write(rest);
  };
  try {
    co_await OnBlockingPool(pool_, std::move(finish));
  } catch (const Error& error) {
    logger_.Error(
        "The last changes to the state in {} could not be written; no client was answered about them: {}",
        options_.journal, error.message());
  }
}

std::uint64_t Server::durable() const {
  return journal_ ? durable_ : std::numeric_limits<std::uint64_t>::max();
}

// Called after everything that may have changed the tree.
void Server::AfterChange() {
  if (engine_.change_count() != durable_) changed_.Set();
  if (engine_.HasEmptiedContainers()) container_emptied_.Set();
}

Task<> Server::KeepOnDisk() {
  while (true) {
    co_await changed_.Wait();
    changed_.Reset();
    std::uint64_t upto = engine_.change_count();
    writing_ = engine_.TakeChanges();
    if (journal_) {
      Task<> write = Write();
      co_await Uninterrupted(std::move(write));
    }
    writing_ = {};
    durable_ = upto;
    for (ServerWatches::ConnectionId connection_id : std::exchange(holding_back_, {})) {
      Connection& connection = *connections_.at(connection_id);
      connection.Release(durable_);
      if (connection.holds_back()) holding_back_.insert(connection_id);
    }
  }
}

// Tries until it succeeds: until then no client is sent the changes.
Task<> Server::Write() {
  int failures = 0;
  while (true) {
    auto write = [this] { journal_->Write(writing_); };
    Outcome<> written = co_await Attempt(OnBlockingPool(pool_, write));
    if (written) break;
    std::string cause = written.error().message() + ShortageNear(options_.journal);
    if (failures % kRetriesPerLogLine == 0) {
      logger_.Error("The state in {} cannot be written, so no ZooKeeper client is answered: {}",
                    options_.journal, cause);
    }
    if (failures++ == 0) options_.on_disk_trouble(cause);
    if (tasks_.stopping()) written.error().Rethrow();
    co_await loop_.SleepFor(kDiskRetry);
  }
  ++traffic_.commits;
  if (failures == 0) co_return;
  logger_.Info("The state in {} is written again", options_.journal);
  options_.on_disk_trouble("");
}

Task<> Server::DeleteContainers() {
  while (true) {
    co_await container_emptied_.Wait();
    container_emptied_.Reset();
    co_await loop_.SleepFor(options_.container_check);
    if (engine_.DeleteEmptyContainers() > 0) AfterChange();
  }
}

std::string NewPassword() {
  std::string password(kPasswordSize, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(password.data()), kPasswordSize) != 1) {
    throw Error(Verdict::kFail, "the system gives no random numbers");
  }
  return password;
}

bool IsSameSecret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Which clients get a session, which sessions the server gives up, and which are those of its own process.

namespace {

constexpr std::size_t kLongestGreeting = 4096;

std::uint64_t Hexadecimal(std::int64_t id) { return static_cast<std::uint64_t>(id); }

}  // namespace

// A frame of a client that has no session yet.
Task<std::string> Server::ReadGreeting(WireConnection& wire) {
  std::optional<std::string_view> frame = wire.TakeFrame();
  while (!frame) {
    if (wire.unread().size() > kLongestGreeting) {
      throw Error(Verdict::kFail, "malformed frame: it is too long to ask for a session");
    }
    co_await wire.Fill();
    frame = wire.TakeFrame();
  }
  co_return std::string(*frame);
}

// Whether the connection has the session that it asked for, or a new one.
Task<bool> Server::Admit(Connection& connection, ConnectRequestFrame connect) {
  bool is_new = connect.request.session_id == 0;
  bool is_stranger = IsStranger(connection.wire()) && !IsOwn(connect.request);
  std::optional<SessionRecord> session = SessionFor(connect.request);
  if (session && !is_stranger) Begin(connection, *session, is_new);
  SendSession(connection, session.value_or(SessionRecord{}), connect.is_read_only_known);
  if (!session || !is_stranger) co_return session.has_value();
  bool is_admitted = co_await AdmitWithSecret(connection, std::move(*session), is_new);
  co_return is_admitted;
}

// Clients show what they know once they are told their session. Until then it is recorded nowhere, so
// strangers leave nothing behind and take nobody's place.
Task<bool> Server::AdmitWithSecret(Connection& connection, SessionRecord session, bool is_new) {
  std::string frame = co_await ReadGreeting(connection.wire());
  Request request = ReadRequest(frame);
  if (!ShowsSecret(request)) {
    std::string refusal;
    Code code = request.op == protocol::OpCode::kAuth ? Code::kAuthFailed : Code::kNoAuth;
    AppendFrame(refusal, [&](JuteWriter& out) { WriteReplyHeader(out, {request.xid, 0, code}); });
    Send(connection, std::move(refusal));
    WarnOfClient(fmt::format("Refusing the ZooKeeper client {}: it does not know the secret",
                             connection.wire().name()));
    co_return false;
  }
  if (!is_new && engine_.FindSession(session.id) == nullptr)
    throw Error(Verdict::kRetry, "its session has expired");
  Begin(connection, session, is_new);
  Answer(connection, request);
  co_return true;
}

bool Server::IsStranger(const WireConnection& wire) const {
  return !options_.client_secret.empty() && !wire.has_tls();
}

bool Server::ShowsSecret(const Request& request) const {
  const auto* auth = std::get_if<AuthRequest>(&request.body);
  return auth != nullptr && auth->scheme == "digest" &&
         IsSameSecret(auth->credentials, fmt::format("{}:{}", kClientUser, options_.client_secret));
}

void Server::SetClientSecret(std::string secret) {
  if (secret == options_.client_secret) return;
  options_.client_secret = std::move(secret);
  for (const auto& [id, connection] : connections_) {
    const SessionRecord* session = engine_.FindSession(connection->peer().session);
    bool is_own = session != nullptr && session->is_own;
    if (IsStranger(connection->wire()) && !is_own) connection->Close("it has to show the secret");
  }
}

// The session that the client asks for, a new one that has not begun, or none when it has expired.
// Error(kFail): it cannot be served.
std::optional<SessionRecord> Server::SessionFor(const protocol::ConnectRequest& request) {
  bool is_own = IsOwn(request);
  bool has_place = by_session_.size() < options_.connections || by_session_.contains(request.session_id);
  if (!has_place && !is_own)
    throw Error(Verdict::kFail, fmt::format("{} clients have sessions already", by_session_.size()));
  if (request.session_id != 0) {
    const SessionRecord* session = engine_.FindSession(request.session_id);
    bool is_owner = session != nullptr && IsSameSecret(session->password, request.password);
    if (!is_owner) return std::nullopt;
    if (request.last_zxid > engine_.tree().last_zxid()) {
      throw Error(Verdict::kFail,
                  fmt::format("it has seen transaction 0x{:x}, the last one here is 0x{:x}; was the "
                              "state restored from a back-up?",
                              Hexadecimal(request.last_zxid), Hexadecimal(engine_.tree().last_zxid())));
    }
    return *session;
  }
  if (engine_.sessions().size() >= options_.sessions) CloseAbandonedSessions();
  if (engine_.sessions().size() >= options_.sessions && !is_own) {
    throw Error(Verdict::kFail, fmt::format("there are {} sessions already", options_.sessions));
  }
  Duration asked = std::chrono::milliseconds(request.timeout_ms);
  Duration timeout = std::clamp(asked, options_.min_session_timeout, options_.max_session_timeout);
  auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  return SessionRecord{++last_session_, NewPassword(), static_cast<std::int32_t>(timeout_ms), is_own};
}

// The session is served on this connection from now on.
void Server::Begin(Connection& connection, const SessionRecord& session, bool is_new) {
  if (is_new) {
    engine_.OpenSession(session);
    clock_.Start(session.id, std::chrono::milliseconds(session.timeout_ms));
  }
  Detach(session.id, "its session continues on another connection");
  connection.peer().session = session.id;
  by_session_[session.id] = &connection;
  clock_.Heard(session.id);
  logger_.Debug("The ZooKeeper client {} has session 0x{:x}", connection.wire().name(),
                Hexadecimal(session.id));
}

// One without a number says that the client's session has expired.
void Server::SendSession(Connection& connection, const SessionRecord& session, bool is_read_only_known) {
  protocol::ConnectResponse response;
  response.timeout_ms = session.timeout_ms;
  response.session_id = session.id;
  response.password = session.id == 0 ? std::string(kPasswordSize, '\0') : session.password;
  std::string frame;
  AppendConnectResponse(frame, response, is_read_only_known);
  Send(connection, std::move(frame));
  AfterChange();
}

// Closes the connection of the session, if it has one.
void Server::Detach(std::int64_t session, const std::string& why) {
  auto own = by_session_.find(session);
  if (own == by_session_.end()) return;
  own->second->wire().Close(why);
  by_session_.erase(own);
}

// Those of the process that had the journal before this one and was killed: nobody can continue them.
void Server::CloseOwnSessions() {
  std::vector<std::int64_t> left;
  for (const auto& [id, session] : engine_.sessions()) {
    if (session.is_own) left.push_back(id);
  }
  for (std::int64_t id : left) {
    logger_.Info("Closing the ZooKeeper session 0x{:x} of the process that served {} before and was killed",
                 static_cast<std::uint64_t>(id), options_.journal);
    clock_.Stop(id);
    engine_.CloseSession(id);
  }
}

// Closes those without a client and without ephemeral znodes, which nothing depends on: a hundredth of all
// that there may be, the longest silent ones first, so that the search is worth its cost.
void Server::CloseAbandonedSessions() {
  std::vector<std::pair<SteadyTime, std::int64_t>> abandoned;
  for (const auto& [id, session] : engine_.sessions()) {
    if (by_session_.contains(id) || !engine_.tree().Ephemerals(id).empty()) continue;
    abandoned.emplace_back(clock_.LastHeard(id), id);
  }
  std::ranges::sort(abandoned);
  abandoned.resize(std::min(abandoned.size(), options_.sessions / 100 + 1));
  for (const auto& [heard, id] : abandoned) {
    clock_.Stop(id);
    engine_.CloseSession(id);
  }
}

// Whether a client in this process opens or continues a session.
bool Server::IsOwn(const protocol::ConnectRequest& request) const {
  if (request.session_id != 0) {
    const SessionRecord* session = engine_.FindSession(request.session_id);
    return session != nullptr && session->is_own;
  }
  const std::string& own = options_.own_password;
  return !own.empty() && IsSameSecret(request.password, own);
}

Task<> ServerThread::Start() {
  auto start = [this] { return server_.Start(); };
  co_await thread_.Run(start);
}

Task<> ServerThread::Stop() {
  auto stop = [this] { return server_.Stop(); };
  co_await thread_.Run(stop);
  thread_.End();
}

void ServerThread::SetClientSecret(std::string secret) {
  boost::asio::post(thread_.loop().context(), [this, secret = std::move(secret)]() mutable {
    server_.SetClientSecret(std::move(secret));
  });
}

}  // namespace nodepool::zk::server
