#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "zk/client.h"

namespace nodepool::zk {

struct HostPort {
  std::string host;  // a name, an IPv4 or an IPv6 address (without brackets)
  int port = 2181;
  bool operator==(const HostPort&) const = default;
};

struct TlsFiles {
  std::string cert;  // PEM client certificate, may be a chain
  std::string key;   // PEM private key without pass phrase
  std::string ca;    // PEM certificates that sign servers, besides the system's
};

struct DigestAuth {
  std::string user;
  std::string password;  // a secret: never logged
};

struct WireOptions {
  std::vector<HostPort> servers;
  std::string chroot;  // "" or "/x/y"
  Duration session_timeout = std::chrono::seconds(10);
  // Sent when a session is opened; only the embedded server reads it (ServerOptions::own_password).
  std::string opening_password = std::string(16, '\0');
  std::optional<TlsFiles> tls;  // none: plain TCP
  std::optional<DigestAuth> digest;
  // In place of `digest`: called at each connection, since what is shown may be made or changed meanwhile.
  std::function<std::optional<DigestAuth>()> find_digest;
  Duration connect_timeout = std::chrono::seconds(5);  // TCP, TLS and session handshake of one attempt
  // Called with the reason when no server can be used, before the next try. Set: the log does not say it.
  std::function<void(const std::string& why)> on_trouble;
  std::size_t max_packet = 1'048'575;  // jute.maxbuffer; larger requests are refused before sending
};

// The ZooKeeper protocol on Asio (coordination.md 2). Connects in the background
// from construction on, for ever: servers in random order, each address of a name
// in turn, pauses that grow from 0.1 s to 5 s. Server certificates are checked
// against the CA; host names are not (coordination.md 2.3).
class WireClient : public Client {
 public:
  // Throws Error(kInvalid) naming the file when a TLS file cannot be used, and for
  // an empty server list.
  WireClient(Loop& loop, Random& random, WireOptions options);
  ~WireClient() override;  // call Close() first, else the session is left to time out

  Task<Result<Created>> Create(std::string path, std::string data, CreateMode mode) override;
  Task<Result<NodeData>> Get(std::string path) override;
  Task<Result<Stat>> Exists(std::string path) override;
  Task<Result<Stat>> Set(std::string path, std::string data, std::int32_t version) override;
  Task<Result<>> Delete(std::string path, std::int32_t version) override;
  Task<Result<Children>> GetChildren(std::string path) override;
  Task<MultiResult> Multi(std::vector<Op> ops) override;
  Task<std::vector<ReadResult>> ReadMany(std::vector<ReadOp> ops) override;
  Task<> Sync(std::string path) override;
  Task<Result<NodeData>> GetAndWatch(std::string path, Watcher watcher) override;
  Task<Result<Stat>> ExistsAndWatch(std::string path, Watcher watcher) override;
  Task<Result<Children>> GetChildrenAndWatch(std::string path, Watcher watcher) override;
  Task<Subscription> AddWatch(std::string path, WatchMode mode, Watcher watcher) override;
  Subscription OnSession(std::function<void(SessionState)> listener) override;
  SessionState state() const override;
  Session session() const override;
  const OwnWrites& own_writes() const override;
  Task<> Close() override;

  // A create with a time to live, which Create has no parameter for.
  Task<Result<Created>> CreateTtl(std::string path, std::string data, CreateMode mode, Duration ttl);

  // Other servers of the same ensemble, used from the next connection on.
  void SetServers(std::vector<HostPort> servers);

  // Operations sent so far, by kind of effect; for benchmarks and metrics.
  struct Counters {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
  };
  Counters counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nodepool::zk
