// The launcher under load, as a whole process on a private ZooKeeper: latency from
// a request's creation to its fulfilment, throughput, CPU, memory and ZooKeeper
// writes. The simulated cloud boots in no time, so all that is measured is ours.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bench/load_client.h"
#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {
namespace {

struct Settings {
  std::string launcher = "nodepool-launcher";
  int requests = 1000;
  double rate = 0;
  int nodes = 0;    // that exist beside the load
  int waiting = 0;  // requests that nobody can serve now
  int idle_seconds = 0;
  bool tls = false;  // between the launcher and ZooKeeper
};

std::string Configuration(const testing::ZooKeeperServer& server, bool tls) {
  std::string files;
  if (tls) {
    zk::TlsFiles own = server.client_files();
    files = fmt::format("zookeeper-tls: {{cert: {}, key: {}, ca: {}}}", own.cert, own.key, own.ca);
  }
  return fmt::format(R"(
zookeeper-servers:
  - host: 127.0.0.1
    port: {}
{}
webapp: {{listen_address: 127.0.0.1, port: 0}}
labels:
  - name: small
  - name: waiting
providers:
  - name: fake-load
    driver: fake
    cloud: simulated
    cloud-images: [{{name: image, image-name: Fake Precise}}]
    pools:
      - name: main
        labels: [{{name: small, cloud-image: image, flavor-name: Fake Flavor}}]
    simulation:
      create-latency: 0.0
      delete-latency: 0.0
      limits: {{cores: -1, instances: -1, ram: -1}}
  - name: nowhere
    driver: static
    pools:
      - name: main
        nodes: [{{name: 127.0.0.1, connection-port: 1, labels: waiting}}]
)",
                     tls ? server.tls_port() : server.port(), files);
}

// A launcher as a child process; dies with the benchmark.
class LauncherProcess {
 public:
  LauncherProcess(const std::string& program, const std::string& directory,
                  const std::string& configuration) {
    std::ofstream(directory + "/nodepool.yaml") << configuration;
    std::string config = directory + "/nodepool.yaml", log = directory + "/launcher.log";
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int file = open(log.c_str(), O_CREAT | O_WRONLY, 0600);
    dup2(file, 1);
    dup2(file, 2);
    execlp(program.c_str(), program.c_str(), "-f", "-c", config.c_str(), nullptr);
    _exit(127);
  }
  ~LauncherProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  double CpuSeconds() const {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
    // Fields 14 and 15 of proc(5), counted after the command's closing bracket.
    return (std::stod(values.at(11)) + std::stod(values.at(12))) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  double PeakMegabytes() const {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
    }
    return 0;
  }

 private:
  pid_t pid_ = 0;
};

double Percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1))];
}

// The number of the newest transaction: every write of anybody counts one.
Task<std::int64_t> Zxid(zk::Client& client) {
  auto created =
      co_await zk::CreateWithParents(client, "/bench/mark-", "", zk::CreateMode::kEphemeralSequential);
  co_return created->stat.czxid;
}

Task<> AwaitServing(Loop& loop, zk::Client& client) {
  while (true) {
    auto pools = co_await client.GetChildren("/nodepool/components/pool");
    if (pools && pools->names.size() == 2) co_return;
    co_await loop.SleepFor(std::chrono::milliseconds(50));
  }
}

// Ends when nothing is left but `count` nodes.
Task<> AwaitNodes(Loop& loop, zk::Client& client, int count) {
  while (true) {
    auto nodes = co_await client.GetChildren("/nodepool/nodes");
    auto locks = co_await client.GetChildren("/nodepool/requests-lock");
    bool are_nodes_gone = !nodes || nodes->names.size() <= static_cast<std::size_t>(count);
    if (are_nodes_gone && (!locks || locks->names.empty())) co_return;
    co_await loop.SleepFor(std::chrono::milliseconds(20 + count / 50));
  }
}

// What stands around while the load passes: held nodes, which are neither reused nor
// deleted, and requests that wait for a host that does not answer.
Task<> Furnish(Loop& loop, zk::WireClient& client, Settings settings) {
  SystemRandom random;
  store::Store store(loop, client, random);
  for (int i = 0; i < settings.nodes; ++i) {
    Node node;
    node.SetState(NodeState::kHold, loop.Now());
    node.provider = ProviderName("fake-load");
    node.pool = PoolName("main");
    node.type = {LabelName("small")};
    node.resources = Resources{{"instances", 1}, {"cores", 4}, {"ram", 8192}};
    co_await store.nodes.Create(std::move(node));
  }
  for (int i = 0; i < settings.waiting; ++i) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, loop.Now());
    request.node_types = {LabelName("waiting")};
    co_await store.requests.Create("100", std::move(request), false);
  }
}

Task<> Load(Loop& loop, zk::WireClient& client, LauncherProcess& launcher, Settings settings) {
  SystemRandom random;
  LoadClient load(loop, client, random);
  co_await load.Start();
  // The first request makes the directories.
  std::vector<Timeline> warm_up = co_await load.Run(1, 0, LabelName("small"));
  co_await AwaitNodes(loop, client, settings.nodes);
  double cpu_before = launcher.CpuSeconds();
  std::uint64_t own_before = client.counters().writes;
  std::int64_t zxid_before = co_await Zxid(client);
  std::vector<Timeline> timelines = co_await load.Run(settings.requests, settings.rate, LabelName("small"));
  co_await AwaitNodes(loop, client, settings.nodes);
  std::int64_t zxid_after = co_await Zxid(client);
  double own = static_cast<double>(client.counters().writes - own_before);
  double all = static_cast<double>(zxid_after - zxid_before + 1);
  double cpu = launcher.CpuSeconds() - cpu_before;

  std::vector<double> latencies;
  double first = 1e9, last = 0;
  int failed = 0;
  for (const Timeline& timeline : timelines) {
    failed += timeline.is_failed ? 1 : 0;
    latencies.push_back(timeline.fulfilled - timeline.created);
    first = std::min(first, timeline.created);
    last = std::max(last, timeline.fulfilled);
  }
  double count = static_cast<double>(timelines.size());
  fmt::print("beside {} nodes and {} waiting requests: requests {} ({}), failed {}\n", settings.nodes,
             settings.waiting, timelines.size(),
             settings.rate > 0 ? fmt::format("{} per second", settings.rate) : "all at once", failed);
  fmt::print("created to fulfilled: min {:.1f} ms, p50 {:.1f} ms, p99 {:.1f} ms, max {:.1f} ms\n",
             1e3 * Percentile(latencies, 0), 1e3 * Percentile(latencies, 0.5),
             1e3 * Percentile(latencies, 0.99), 1e3 * Percentile(latencies, 1));
  fmt::print("throughput: {:.0f} requests per second\n", count / (last - first));
  fmt::print("ZooKeeper transactions per request: launcher {:.2f}, consumer {:.2f}\n", (all - own) / count,
             own / count);
  fmt::print("launcher: {:.2f} CPU seconds ({:.2f} ms per request), peak memory {:.1f} MB\n", cpu,
             1e3 * cpu / count, launcher.PeakMegabytes());
  co_await load.Stop();
}

Task<> Idle(Loop& loop, LauncherProcess& launcher, Settings settings) {
  co_await loop.SleepFor(std::chrono::seconds(3));
  double before = launcher.CpuSeconds();
  co_await loop.SleepFor(std::chrono::seconds(settings.idle_seconds));
  double used = launcher.CpuSeconds() - before;
  fmt::print(
      "idle with {} nodes and {} waiting requests: {:.3f} % of one core over {} s, peak memory {:.1f} MB\n",
      settings.nodes, settings.waiting, 100 * used / settings.idle_seconds, settings.idle_seconds,
      launcher.PeakMegabytes());
}

Task<> RunAll(Loop& loop, zk::WireClient& client, LauncherProcess& launcher, Settings settings) {
  co_await AwaitServing(loop, client);
  co_await Furnish(loop, client, settings);
  if (settings.idle_seconds > 0) co_await Idle(loop, launcher, settings);
  if (settings.requests > 0) co_await Load(loop, client, launcher, settings);
  co_await client.Close();
}

int Main(Settings settings) {
  testing::ZooKeeperServer::Options options;
  options.tick_time = 2000;
  options.min_session_timeout = 4000;
  options.tls = settings.tls;
  testing::ZooKeeperServer server(options);
  server.Start();
  char directory[] = "/tmp/nodepool-load-XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  {
    LauncherProcess launcher(settings.launcher, directory, Configuration(server, settings.tls));
    Loop loop;
    SystemRandom random;
    zk::WireOptions wire;
    wire.servers = {server.address()};
    zk::WireClient client(loop, random, wire);
    RunToEnd(loop, RunAll(loop, client, launcher, settings));
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  nodepool::bench::Settings settings;
  settings.launcher = std::filesystem::path(argv[0]).parent_path() / "nodepool-launcher";
  CLI::App app("Loads a launcher with node requests and reports what it costs");
  app.add_option("--launcher", settings.launcher, "the program to measure")->capture_default_str();
  app.add_option("--requests", settings.requests, "how many one-node requests")->capture_default_str();
  app.add_option("--rate", settings.rate, "so many a second; 0: all at once")->capture_default_str();
  app.add_option("--nodes", settings.nodes, "so many held nodes stand beside")->capture_default_str();
  app.add_option("--waiting", settings.waiting, "and so many requests that cannot be served now")
      ->capture_default_str();
  app.add_option("--idle-seconds", settings.idle_seconds,
                 "first measure the idle launcher for so long; 0: do not")
      ->capture_default_str();
  app.add_flag("--tls", settings.tls, "the launcher talks to ZooKeeper through TLS");
  CLI11_PARSE(app, argc, argv);
  return nodepool::bench::Main(settings);
}
