#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/figures.h"
#include "bench/load_client.h"
#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {

// What load_bench measures, as data.
struct LoadMode {
  std::string_view name;
  std::string_view help;
  int nodes_per_request = 1;
  // What as many requests before the measured ones leave of their nodes; none: there are no such requests.
  std::optional<Afterwards> before = std::nullopt;
  Afterwards after = Afterwards::kUse;
  bool is_limited = false;  // the pool has max-servers
};

std::span<const LoadMode> LoadModes();
// Null: there is no such mode.
const LoadMode* FindLoadMode(std::string_view name);
// A line for each mode.
std::string LoadModesHelp();

// Processor time that a process has used, in seconds.
struct CpuTime {
  double user = 0;
  double system = 0;

  double total() const { return user + system; }
  CpuTime operator-(const CpuTime& before) const { return {user - before.user, system - before.system}; }
};

// A program that is measured: a child that dies with the benchmark, with its output in a file.
class DaemonProcess {
 public:
  DaemonProcess(std::vector<std::string> words, const std::string& log);
  ~DaemonProcess();  // SIGTERM, and waits
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Throws std::runtime_error with the end of its log if it has ended.
  void AssertRunning();
  CpuTime Cpu() const;  // of all its threads, in ticks of the kernel's clock
  double PeakMegabytes() const;
  double ResidentMegabytes() const;

 private:
  double Status(const std::string& key) const;

  std::string log_;
  pid_t pid_ = 0;
};

enum class Server {
  kApache,    // nodepool-launcher with Apache ZooKeeper
  kEmbedded,  // nodepool standalone, with the server in its process
};

struct LoadSiteOptions {
  std::string programs;  // their folder
  Server server = Server::kApache;
  bool tls = false;      // between the launcher and Apache ZooKeeper
  int max_servers = -1;  // of the pool; -1: no limit
  bool has_breaker = true;
  // The only one with the label `waiting`; the launcher asks it for its key again and again.
  bool has_silent_host = false;
};

// A launcher with a ZooKeeper server of its own and a cloud that boots at once; all of it is gone with this
// object. Its pool offers the label `small`.
class LoadSite {
 public:
  explicit LoadSite(const LoadSiteOptions& options);
  ~LoadSite();

  zk::HostPort address() const { return address_; }
  DaemonProcess& daemon() { return *daemon_; }

 private:
  std::string Connection(const LoadSiteOptions& options) const;

  std::string directory_;
  std::optional<testing::ZooKeeperServer> server_;
  zk::HostPort address_;
  std::optional<DaemonProcess> daemon_;
};

struct LoadSettings {
  std::string mode = "launch";
  int requests = 1000;
  double rate = 0;  // so many a second; 0: all at once
  int warm_up =
      500;          // requests before the measured ones, all at once: the server compiles what is used often
  int nodes = 0;    // that exist beside the load, held
  int waiting = 0;  // requests that nobody can serve now
  int idle_seconds = 0;  // for which the idle launcher is measured before
};

// One run: furnishes the tree, sends the requests and measures the launcher meanwhile.
class LoadRun {
 public:
  // All of it outlives this object.
  LoadRun(Loop& loop, zk::WireClient& client, DaemonProcess& daemon, LoadSettings settings);

  Task<> Run();
  const Figures& figures() const { return figures_; }

 private:
  Task<> AwaitServing();
  // What is there while the load passes: held nodes, which are neither reused nor
  // deleted, and requests that wait for a host that does not answer.
  Task<> Furnish();
  Task<> Idle();
  Task<> MeasureLoad();
  Load LoadOf(int count, Afterwards afterwards) const;
  // Ends when nothing is left but `count` nodes.
  Task<> AwaitNodes(int count);
  // Ends when nobody writes any more: what came before is over.
  Task<> AwaitQuiet();
  // The number of the newest transaction: every write of anybody counts one.
  Task<std::int64_t> Zxid();
  void AddTimes(const std::vector<Timeline>& timelines);

  Loop& loop_;
  zk::WireClient& client_;
  DaemonProcess& daemon_;
  LoadSettings settings_;
  const LoadMode& mode_;
  SystemRandom random_;
  store::Store store_;
  Figures figures_;
};

}  // namespace nodepool::bench
