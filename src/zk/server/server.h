#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task_group.h"
#include "zk/server/connection.h"
#include "zk/server/engine.h"
#include "zk/server/journal.h"
#include "zk/wire/wire_client.h"

namespace nodepool::zk::server {

struct ServerOptions {
  std::string address = "127.0.0.1";  // an IP address; "::" serves IPv4, too
  int port = 2181;                    // plain TCP; 0: a free one, -1: none
  std::string tls_address = "::";
  int tls_port = -1;            // with `tls`; the same
  std::optional<TlsFiles> tls;  // clients need a certificate that `ca` signed
  // The password with which clients in the server's own process open a session: 16 random bytes, a
  // secret. Such a session ends with the process: the next start closes it. Empty: there are none.
  std::string own_password;
  // What clients over plain TCP have to show before they get a session: the first request adds the digest
  // identity kClientUser:secret. A secret. Clients with TLS show their certificate, those of the own process
  // `own_password`. Empty: nobody has to show anything.
  std::string client_secret;
  std::string journal;  // file; empty: everything is in memory alone
  Duration min_session_timeout = std::chrono::seconds(1);
  Duration max_session_timeout = std::chrono::minutes(5);
  Duration container_check = std::chrono::seconds(60);  // how long an empty container may remain
  std::size_t max_packet = 1'048'575;                   // larger requests end the connection
  // Clients with sessions; further ones are disconnected, except those of the server's own process.
  std::size_t connections = 2000;
  // With those whose clients are away; for a further one, abandoned ones are closed.
  std::size_t sessions = 100'000;
  Engine::Limits limits;
  // Called on the server's loop with the cause when the state cannot be written, so that no client is
  // answered, and with "" when it can be written again.
  std::function<void(const std::string& cause)> on_disk_trouble = [](const std::string&) {};
};

// A ZooKeeper server for one machine: the client protocol over a tree in memory that is stored on
// disk. A write is answered, and a change shown to any client, when it is on disk; writes that
// arrive while the disk is busy are stored together. No replication.
//
// A client can at worst end its own connection, with a log line. When the disk fails, nothing is
// answered until it works again.
class Server {
 public:
  Server(Loop& loop, BlockingPool& pool, ServerOptions options);
  ~Server();  // call Stop() first

  // Loads what is stored and begins to serve. Error(kConflict): another process has the journal.
  // Error(kInvalid) says what cannot be used: the journal, an address, a TLS file.
  Task<> Start();
  int port() const;
  int tls_port() const;
  // So far.
  const Traffic& traffic() const { return traffic_; }

  // From now on clients need another secret, or none. Those over plain TCP are disconnected, apart from those
  // of the own process; their sessions continue when they come again with it.
  void SetClientSecret(std::string secret);

  // Closes all connections and writes the rest to disk. Sessions continue after the next start.
  // Bounded by the disk; never throws.
  Task<> Stop();

 private:
  using Acceptor = boost::asio::ip::tcp::acceptor;
  struct Enlisted;

  void Listen(std::optional<Acceptor>& acceptor, const std::string& address, int port,
              boost::asio::ssl::context* tls);
  Task<> Accept(Acceptor& acceptor, boost::asio::ssl::context* tls);
  void WarnOfClient(std::string text);
  bool HangUpOnSilent();
  Task<> Serve(std::shared_ptr<WireConnection> wire);
  Task<> Converse(Connection& connection);
  Task<bool> Greet(Connection& connection);
  Task<bool> Admit(Connection& connection, ConnectRequestFrame connect);
  Task<bool> AdmitWithSecret(Connection& connection, SessionRecord session, bool is_new);
  bool IsStranger(const WireConnection& wire) const;
  bool ShowsSecret(const Request& request) const;
  static Task<std::string> ReadGreeting(WireConnection& wire);
  bool IsOwn(const protocol::ConnectRequest& request) const;
  void CloseAbandonedSessions();
  std::optional<SessionRecord> SessionFor(const protocol::ConnectRequest& request);
  void Begin(Connection& connection, const SessionRecord& session, bool is_new);
  void SendSession(Connection& connection, const SessionRecord& session, bool is_read_only_known);
  Task<> AnswerRequests(Connection& connection);
  Engine::Next Answer(Connection& connection, const Request& request);
  Task<> Linger(Connection& connection);

  void Deliver(ServerWatches::ConnectionId connection_id, const WatchEvent& event, const Acl* acl);
  void Send(Connection& connection, std::string frames);
  void NoteTraffic(std::size_t bytes);
  void BoundBacklogs();
  void HangUpOnSlow(Connection& connection);
  void AfterChange();
  void Expire(std::int64_t session);
  void Detach(std::int64_t session, const std::string& why);

  void CloseOwnSessions();

  Task<> KeepOnDisk();
  Task<> Write();
  Task<> DeleteContainers();
  Task<> FreeWatches();
  std::uint64_t durable() const;

  Loop& loop_;
  BlockingPool& pool_;
  ServerOptions options_;
  log::Logger logger_;
  LogThrottle client_warnings_;
  Engine engine_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<boost::asio::ssl::context> tls_;
  std::optional<Acceptor> plain_acceptor_, tls_acceptor_;
  SessionClock clock_;
  std::int64_t last_session_ = 0;
  ServerWatches::ConnectionId last_connection_ = 0;
  std::map<ServerWatches::ConnectionId, Connection*> connections_;
  std::map<std::int64_t, Connection*> by_session_;
  std::set<ServerWatches::ConnectionId> holding_back_;
  Event changed_, container_emptied_, watches_removed_;
  Gate turns_{1};                      // of clients
  std::size_t bytes_since_check_ = 0;  // to and from all clients
  Changes writing_;                    // being written to disk
  std::uint64_t durable_ = 0;
  Traffic traffic_;
  TaskGroup tasks_;
};

// Of a session; clients expect this many bytes.
constexpr std::size_t kPasswordSize = 16;

// Random bytes that cannot be guessed. Error(kFail) when the system has none.
std::string NewPassword();

// The user of the digest identity by which clients over plain TCP show ServerOptions::client_secret.
constexpr std::string_view kClientUser = "nodepool";

// Whether both are equal; takes equally long wherever they differ.
bool IsSameSecret(std::string_view a, std::string_view b);

// A Server on a thread of its own, so that its clients cannot delay what else the process does.
// Only bytes cross: the process is its client over TCP like any other. Start() and Stop() are
// called on the process's loop.
class ServerThread {
 public:
  explicit ServerThread(ServerOptions options) : server_(thread_.loop(), disk_, std::move(options)) {}
  ~ServerThread() { thread_.End(); }

  // As those of Server. After Stop() the thread has ended.
  Task<> Start();
  Task<> Stop();
  // As that of Server, while it is started. From any thread; does not wait.
  void SetClientSecret(std::string secret);

  // For those who watch over loops.
  Loop& loop() { return thread_.loop(); }

 private:
  LoopThread thread_{"zookeeper"};
  BlockingPool disk_{1};
  Server server_;
};

}  // namespace nodepool::zk::server
