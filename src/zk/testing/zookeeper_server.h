#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "zk/wire/wire_client.h"

namespace nodepool::testing {

// A private Apache ZooKeeper from Debian's package, on free ports of the loopback
// with its data in a temporary directory. It dies with the test, even with one that
// crashes. Failures to start throw std::runtime_error with the server's log.
//
// With NODEPOOL_TEST_ZOOKEEPER=embedded in the environment it is the embedded server.
class ZooKeeperServer {
 public:
  enum class Kind { kApache, kEmbedded };
  static Kind KindFromEnvironment();

  struct Options {
    Kind kind = KindFromEnvironment();
    bool tls = false;  // also a secure port, with certificates of an own CA
    // Apache's as it is in earnest: each write waits for the disk, and Java compiles as well as
    // it can. Else it is one that starts quickly.
    bool durable = false;
    int min_session_timeout = 200;          // milliseconds
    int tick_time = 100;                    // milliseconds; sessions expire on its multiples
    std::vector<std::string> config_lines;  // more lines for its configuration file
  };

  ZooKeeperServer();
  explicit ZooKeeperServer(Options options);
  ~ZooKeeperServer();
  ZooKeeperServer(const ZooKeeperServer&) = delete;
  ZooKeeperServer& operator=(const ZooKeeperServer&) = delete;

  // All end when it is done: Start and Restart when the server takes clients.
  void Start();
  void Stop();     // SIGTERM
  void Kill();     // SIGKILL
  void Restart();  // the same ports and data
  void Pause();    // SIGSTOP
  void Resume();

  pid_t pid() const { return pid_; }
  int port() const { return port_; }
  int tls_port() const { return tls_port_; }
  zk::HostPort address() const { return {"127.0.0.1", port_}; }
  zk::HostPort tls_address() const { return {"127.0.0.1", tls_port_}; }
  // A client certificate that the server trusts, and its CA; only with tls.
  zk::TlsFiles client_files() const;
  // The same kind of files of a CA that the server does not know.
  zk::TlsFiles stranger_files() const;

  // The answer to a four letter word ("srvr", "ruok"); empty when there is none.
  std::string Ask(const std::string& word) const;
  bool is_leader() const { return Ask("srvr").find("Mode: leader") != std::string::npos; }

 private:
  friend class ZooKeeperEnsemble;

  void Spawn();
  [[noreturn]] void ExecuteApache();
  [[noreturn]] void ExecuteEmbedded();
  void WaitUntilServing();
  void WriteConfig();
  std::string Log() const;

  Options options_;
  std::string directory_;
  int port_ = 0;
  int tls_port_ = 0;
  pid_t pid_ = 0;
};

// Three servers that replicate each other.
class ZooKeeperEnsemble {
 public:
  ZooKeeperEnsemble();

  std::vector<zk::HostPort> addresses() const;
  ZooKeeperServer& server(std::size_t index) { return *servers_[index]; }
  std::size_t size() const { return servers_.size(); }
  // Waits for one to lead.
  std::size_t Leader() const;

 private:
  std::vector<std::unique_ptr<ZooKeeperServer>> servers_;
};

}  // namespace nodepool::testing
