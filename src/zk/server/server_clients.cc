#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>

#include "async/task.h"
#include "base/error.h"
#include "base/text.h"
#include "zk/server/request.h"
#include "zk/server/server.h"

namespace nodepool::zk::server {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kWordSize = 4;
// For the time from the connection to a session, and for the client to take the last bytes.
constexpr Duration kAnswerTimeout = std::chrono::seconds(10);
// A client with more unread bytes than the first has no further requests executed; one with more
// than the second, which events can lead to, is disconnected.
constexpr std::size_t kBacklogToPause = 1 << 20;
constexpr std::size_t kBacklogToClose = std::size_t{64} << 20;
// When all clients together have more, with the requests that they have not finished, those with the most are
// disconnected.
constexpr std::size_t kAllBacklogs = std::size_t{96} << 20;
constexpr std::size_t kBytesBetweenChecks = 4 << 20;  // sent and received, between checks of all backlogs
// How many connections may be without a session, besides those that sessions leave free.
constexpr std::size_t kNewcomers = 100;
constexpr std::size_t kShortRequest = 16 << 10;
// What can be copied into new memory within a millisecond or so.
constexpr std::size_t kFewBytes = 64 << 10;

// Whether a request may take more than a millisecond.
bool MayTakeLong(std::string_view frame, const Engine& engine) {
  using enum protocol::OpCode;
  protocol::OpCode op = OperationOf(frame);
  if (frame.size() > kShortRequest || op == kMultiRead || op == kGetEphemerals || op == kCountDescendants)
    return true;
  std::optional<std::string_view> path = PathThatIsRead(frame);
  return path && engine.SizeOf(*path) > kFewBytes;
}

std::uint64_t Hex(std::int64_t id) { return static_cast<std::uint64_t>(id); }

// Closes a connection when its time is up, unless the scope ends before.
class CloseTimer {
 public:
  CloseTimer(Loop& loop, WireConnection& wire, std::string what)
      : clock_(loop.clock()),
        timer_(clock_.CallAt(loop.SteadyNow() + kAnswerTimeout,
                             [&wire, what = std::move(what)] { wire.Close(what); })) {}
  ~CloseTimer() { clock_.CancelTimer(timer_); }
  CloseTimer(const CloseTimer&) = delete;
  CloseTimer& operator=(const CloseTimer&) = delete;

 private:
  Clock& clock_;
  Clock::TimerId timer_;
};

}  // namespace

// Registers a connection with the server for the duration of a scope.
struct Server::Enlisted {
  Enlisted(Server& server, std::shared_ptr<WireConnection> wire)
      : server(server), connection(++server.last_connection_, std::move(wire)) {
    server.connections_[connection.peer().connection_id] = &connection;
  }
  ~Enlisted() {
    connection.wire().Close("done");
    Engine::Peer& peer = connection.peer();
    auto own = server.by_session_.find(peer.session);
    if (own != server.by_session_.end() && own->second == &connection) server.by_session_.erase(own);
    server.engine_.RemoveWatches(peer.connection_id);
    server.watches_removed_.Set();
    server.holding_back_.erase(peer.connection_id);
    server.connections_.erase(peer.connection_id);
  }

  Server& server;
  Connection connection;
};

Task<> Server::Accept(Acceptor& acceptor, asio::ssl::context* tls) {
  boost::system::error_code reported;
  while (true) {
    tcp::socket socket(loop_.context());
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await acceptor.async_accept(socket, token);
    if (!acceptor.is_open()) co_return;
    if (error && error != reported) {
      logger_.Warning("ZooKeeper clients cannot be accepted at present: {}", error.message());
    }
    reported = error;
    if (error) {
      co_await loop_.SleepFor(std::chrono::seconds(1));
      continue;
    }
    if (connections_.size() >= options_.connections + kNewcomers && !HangUpOnSilent()) {
      WarnOfClient(fmt::format("Refusing a ZooKeeper client: {} are already connected", connections_.size()));
      continue;
    }
    auto wire = std::make_shared<WireConnection>(loop_, tls, std::move(socket), options_.max_packet);
    tasks_.Spawn("ZooKeeper client", Serve(std::move(wire)));
  }
}

// Disconnects the client that has been silent without a session for the longest time, for another one that
// may have more to say; false: there is none.
bool Server::HangUpOnSilent() {
  Connection* silent = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (connection->peer().session != 0 || connection->wire().is_closed()) continue;
    bool is_longer = silent == nullptr || connection->wire().last_received() < silent->wire().last_received();
    if (is_longer) silent = connection;
  }
  if (silent != nullptr) silent->wire().Close("its place is needed for a client that speaks");
  return silent != nullptr;
}

Task<> Server::Serve(std::shared_ptr<WireConnection> wire) {
  Enlisted enlisted(*this, wire);
  Outcome<> end = co_await Attempt(Converse(enlisted.connection));
  if (end) co_return;
  std::string session = fmt::format("session 0x{:x}", Hex(enlisted.connection.peer().session));
  if (FailedWith(end, Verdict::kRetry)) {
    logger_.Debug("The ZooKeeper client {} ({}) has disconnected: {}", wire->name(), session,
                  end.error().message());
  } else {
    WarnOfClient(fmt::format("Closing the connection to ZooKeeper client {} ({}): {}", wire->name(), session,
                             end.error().message()));
  }
}

// A client can cause any number of these lines.
void Server::WarnOfClient(std::string text) {
  log::Level level = client_warnings_.Admits() ? log::Level::kWarning : log::Level::kDebug;
  if (logger_.Enabled(level)) logger_.Write(level, std::move(text));
}

Task<> Server::Converse(Connection& connection) {
  bool is_admitted = co_await Greet(connection);
  if (is_admitted) co_await AnswerRequests(connection);
  co_await Linger(connection);
}

// Until the connection has a session, or its four-letter word is answered. Whether it has a
// session.
Task<bool> Server::Greet(Connection& connection) {
  WireConnection& wire = connection.wire();
  CloseTimer timer(loop_, wire, "it has not asked for a session in time");
  co_await wire.Accept();
  while (wire.unread().size() < kWordSize) co_await wire.Fill();
  traffic_.connections = connections_.size();
  std::string_view word = wire.unread().substr(0, kWordSize);
  std::optional<std::string> answer = AnswerWord(word, engine_, traffic_, IsStranger(wire));
  if (answer) {
    wire.out() += *answer;
    wire.Flush();
    co_return false;
  }
  std::string frame = co_await ReadGreeting(wire);
  bool is_admitted = co_await Admit(connection, ReadConnectRequest(frame));
  co_return is_admitted;
}

Task<> Server::AnswerRequests(Connection& connection) {
  WireConnection& wire = connection.wire();
  while (true) {
    Turn turn(loop_, turns_);
    while (std::optional<std::string_view> frame = wire.TakeFrame()) {
      if (!turn.Covers(MayTakeLong(*frame, engine_))) {
        co_await turn.Begin();
        clock_.Heard(connection.peer().session);  // it is not to blame for the time that it waited
      }
      if (wire.is_closed()) break;
      if (Answer(connection, ReadRequest(*frame)) == Engine::Next::kClose) co_return;
      if (connection.backlog() > kBacklogToPause) {
        turn.End();
        co_await connection.WaitUntilSent();
      }
    }
    turn.End();
    std::size_t unfinished = wire.unread().size();
    if (unfinished > kFewBytes) {
      // Its buffer may have to grow, which takes long.
      co_await turn.Begin();
      wire.MakeRoom();
      turn.End();
    }
    co_await wire.Fill();
    NoteTraffic(wire.unread().size() - unfinished);
    clock_.Heard(connection.peer().session);
  }
}

Engine::Next Server::Answer(Connection& connection, const Request& request) {
  Engine::Peer& peer = connection.peer();
  ++traffic_.received;
  std::string answer;
  Engine::Next next = engine_.Execute(request, peer, loop_.Now(), answer);
  Send(connection, std::move(answer));
  AfterChange();
  bool is_end = next == Engine::Next::kClose && engine_.FindSession(peer.session) == nullptr;
  if (is_end) clock_.Stop(peer.session);
  return next;
}

// Gives the client time to take the last frames.
Task<> Server::Linger(Connection& connection) {
  CloseTimer timer(loop_, connection.wire(), "it does not read its answer");
  co_await connection.WaitUntilSent();
}

void Server::Send(Connection& connection, std::string frames) {
  ++traffic_.sent;
  std::size_t bytes = frames.size();
  if (connection.Send(std::move(frames), engine_.change_count(), durable())) {
    holding_back_.insert(connection.peer().connection_id);
  }
  NoteTraffic(bytes);
}

void Server::NoteTraffic(std::size_t bytes) {
  bytes_since_check_ += bytes;
  if (bytes_since_check_ > kBytesBetweenChecks) BoundBacklogs();
}

void Server::BoundBacklogs() {
  bytes_since_check_ = 0;
  std::vector<Connection*> open;
  std::size_t all = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection->wire().is_closed()) continue;
    all += connection->bytes();
    open.push_back(connection);
  }
  if (all <= kAllBacklogs) return;
  std::ranges::sort(open, std::ranges::greater(), &Connection::bytes);
  for (Connection* connection : open) {
    if (all <= kAllBacklogs) return;
    all -= connection->bytes();
    HangUpOnSlow(*connection);
  }
}

void Server::HangUpOnSlow(Connection& connection) {
  bool is_reading = connection.backlog() < connection.bytes() / 2;
  std::string_view fault = is_reading ? "does not finish its request" : "does not read what it is sent";
  WarnOfClient(
      fmt::format("The ZooKeeper client {} {}; closing its connection", connection.wire().name(), fault));
  connection.Close(fmt::format("it {}", fault));
}

// Frees what clients with many watches leave, in turns with other work.
Task<> Server::FreeWatches() {
  while (true) {
    co_await watches_removed_.Wait();
    watches_removed_.Reset();
    while (engine_.FreeWatches()) co_await asio::post(loop_.context(), asio::use_awaitable);
  }
}

void Server::Deliver(ServerWatches::ConnectionId connection_id, const WatchEvent& event, const Acl* acl) {
  auto found = connections_.find(connection_id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (!Permits(acl, permission::kRead, connection.peer().who)) return;
  std::string frame;
  AppendEvent(frame, event);
  Send(connection, std::move(frame));
  if (connection.backlog() > kBacklogToClose) HangUpOnSlow(connection);
}

void Server::Expire(std::int64_t session) {
  auto own = by_session_.find(session);
  const SessionRecord* record = engine_.FindSession(session);
  if (record != nullptr && own != by_session_.end() && own->second->wire().HasUnreadBytes()) {
    // The timer is late because this process was stopped or busy; the client is not at fault.
    return clock_.Start(session, std::chrono::milliseconds(record->timeout_ms));
  }
  logger_.Info("The ZooKeeper session 0x{:x} has expired", Hex(session));
  Detach(session, "its session has expired");
  engine_.CloseSession(session);
  AfterChange();
}

}  // namespace nodepool::zk::server
