#include "zk/server/server.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>

#include "async/cleanup.h"
#include "base/error.h"
#include "zk/server/journal.h"
#include "zk/wire/wire_tls.h"

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

}  // namespace nodepool::zk::server
