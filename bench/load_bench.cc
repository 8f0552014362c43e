// The launcher under load, as a whole process on a private ZooKeeper: latency from
// a request's creation to its fulfilment, throughput, CPU, memory and ZooKeeper
// writes. The simulated cloud boots in no time, so all that is measured is ours.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/log/logging.h"
#include "bench/figures.h"
#include "bench/load_modes.h"
#include "bench/load_site.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {
namespace {

struct Settings {
  LoadSiteOptions site;
  std::string mode = "launch";
  int quota = 100;
  int requests = 1000;
  double rate = 0;
  int nodes = 0;    // that exist beside the load
  int waiting = 0;  // requests that nobody can serve now
  int idle_seconds = 0;
  std::string figures;
};

class LoadBench {
 public:
  LoadBench(Loop& loop, zk::WireClient& client, DaemonProcess& daemon, const Settings& settings)
      : loop_(loop),
        client_(client),
        daemon_(daemon),
        settings_(settings),
        mode_(*FindLoadMode(settings.mode)),
        store_(loop, client, random_) {}

  Task<> Run() {
    co_await AwaitServing();
    co_await Furnish();
    if (settings_.idle_seconds > 0) co_await Idle();
    if (settings_.requests > 0) co_await MeasureLoad();
    co_await client_.Close();
  }
  const Figures& figures() const { return figures_; }

 private:
  Task<> AwaitServing() {
    while (true) {
      daemon_.AssertRunning();
      auto pools = co_await client_.GetChildren("/nodepool/components/pool");
      if (pools && pools->names.size() == LoadSite::kPools) co_return;
      co_await loop_.SleepFor(std::chrono::milliseconds(50));
    }
  }

  // What stands around while the load passes: held nodes, which are neither reused nor
  // deleted, and requests that wait for a host that does not answer.
  Task<> Furnish() {
    for (int i = 0; i < settings_.nodes; ++i) {
      Node node;
      node.SetState(NodeState::kHold, loop_.Now());
      node.provider = ProviderName("fake-load");
      node.pool = PoolName("main");
      node.type = {LabelName("small")};
      node.resources = Resources{{"instances", 1}, {"cores", 4}, {"ram", 8192}};
      co_await store_.nodes.Create(std::move(node));
    }
    for (int i = 0; i < settings_.waiting; ++i) {
      NodeRequest request;
      request.SetState(RequestState::kRequested, loop_.Now());
      request.node_types = {LabelName("waiting")};
      co_await store_.requests.Create("100", std::move(request), false);
    }
  }

  Task<> Idle() {
    co_await loop_.SleepFor(std::chrono::seconds(3));
    CpuTime before = daemon_.Cpu();
    co_await loop_.SleepFor(std::chrono::seconds(settings_.idle_seconds));
    double used = (daemon_.Cpu() - before).total();
    figures_.Add("launcher CPU when idle", 100 * used / settings_.idle_seconds, "% of a core");
    figures_.Add("launcher peak memory when idle", daemon_.PeakMegabytes(), "MB");
  }

  Load LoadOf(int count, Afterwards afterwards) const {
    std::vector<LabelName> labels(static_cast<std::size_t>(mode_.nodes_per_request), LabelName("small"));
    return {.count = count, .labels = std::move(labels), .afterwards = afterwards};
  }

  Task<> MeasureLoad() {
    LoadClient load(loop_, client_, random_);
    co_await load.Start();
    // The first request makes the directories.
    co_await load.Run(LoadOf(1, Afterwards::kUse));
    co_await AwaitNodes(settings_.nodes);
    int left = settings_.nodes;
    if (mode_.before) {
      co_await load.Run(LoadOf(settings_.requests, *mode_.before));
      left += settings_.requests * mode_.nodes_per_request;
      co_await AwaitNodes(left);
    }
    CpuTime cpu_before = daemon_.Cpu();
    std::uint64_t own_before = client_.counters().writes;
    std::int64_t zxid_before = co_await Zxid();
    Load measured = LoadOf(settings_.requests, mode_.after);
    measured.rate = settings_.rate;
    std::vector<Timeline> timelines = co_await load.Run(std::move(measured));
    if (mode_.after != Afterwards::kNothing) co_await AwaitNodes(left);
    std::int64_t zxid_after = co_await Zxid();
    auto own = static_cast<double>(client_.counters().writes - own_before);
    auto all = static_cast<double>(zxid_after - zxid_before + 1);
    CpuTime cpu = daemon_.Cpu() - cpu_before;

    AddTimes(timelines);
    auto count = static_cast<double>(timelines.size());
    figures_.Add("ZooKeeper transactions per request, launcher", (all - own) / count, "");
    figures_.Add("ZooKeeper transactions per request, consumer", own / count, "");
    figures_.Add("launcher CPU per request", 1e3 * cpu.total() / count, "ms");
    figures_.Add("launcher CPU per request, user", 1e3 * cpu.user / count, "ms");
    figures_.Add("launcher CPU per request, system", 1e3 * cpu.system / count, "ms");
    figures_.Add("launcher peak memory", daemon_.PeakMegabytes(), "MB");
    co_await load.Stop();
  }

  // Ends when nothing is left but `count` nodes.
  Task<> AwaitNodes(int count) {
    while (true) {
      daemon_.AssertRunning();
      auto nodes = co_await client_.GetChildren("/nodepool/nodes");
      auto locks = co_await client_.GetChildren("/nodepool/requests-lock");
      bool are_nodes_gone = !nodes || nodes->names.size() <= static_cast<std::size_t>(count);
      if (are_nodes_gone && (!locks || locks->names.empty())) co_return;
      co_await loop_.SleepFor(std::chrono::milliseconds(20 + count / 50));
    }
  }

  // The number of the newest transaction: every write of anybody counts one.
  Task<std::int64_t> Zxid() {
    auto created =
        co_await zk::CreateWithParents(client_, "/bench/mark-", "", zk::CreateMode::kEphemeralSequential);
    co_return created->stat.czxid;
  }

  void AddTimes(const std::vector<Timeline>& timelines) {
    std::vector<double> latencies;
    double first = 1e9, last = 0;
    int failed = 0;
    for (const Timeline& timeline : timelines) {
      failed += timeline.is_failed ? 1 : 0;
      latencies.push_back(1e3 * (timeline.fulfilled - timeline.created));
      first = std::min(first, timeline.created);
      last = std::max(last, timeline.fulfilled);
    }
    figures_.Add("failed requests", failed, "");
    figures_.Add("created to fulfilled, least", Percentile(latencies, 0), "ms");
    figures_.Add("created to fulfilled, p50", Percentile(latencies, 0.5), "ms");
    figures_.Add("created to fulfilled, p99", Percentile(latencies, 0.99), "ms");
    figures_.Add("created to fulfilled, most", Percentile(latencies, 1), "ms");
    figures_.Add("requests per second", static_cast<double>(timelines.size()) / (last - first), "");
  }

  Loop& loop_;
  zk::WireClient& client_;
  DaemonProcess& daemon_;
  const Settings& settings_;
  const LoadMode& mode_;
  SystemRandom random_;
  store::Store store_;
  Figures figures_;
};

void Main(Settings settings) {
  if (FindLoadMode(settings.mode)->is_limited) settings.site.max_servers = settings.quota;
  LoadSite site(settings.site);
  Loop loop;
  SystemRandom random;
  zk::WireOptions wire;
  wire.servers = {site.address()};
  zk::WireClient client(loop, random, wire);
  LoadBench bench(loop, client, site.daemon(), settings);
  RunToEnd(loop, bench.Run());
  bench.figures().Write(settings.figures);
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  using namespace nodepool::bench;
  nodepool::log::SetLevel("nodepool", nodepool::log::Level::kError);
  Settings settings;
  settings.site.programs = std::filesystem::path(argv[0]).parent_path();
  CLI::App app("Loads a launcher with node requests and reports what it costs");
  app.add_option("--programs", settings.site.programs, "folder of the programs to measure")
      ->capture_default_str();
  app.add_option("--mode", settings.mode, "what is measured:" + LoadModesHelp())
      ->check([](const std::string& name) { return FindLoadMode(name) ? "" : "there is no mode " + name; })
      ->capture_default_str();
  std::map<std::string, Server> servers{{"apache", Server::kApache}, {"embedded", Server::kEmbedded}};
  app.add_option("--server", settings.site.server,
                 "apache: nodepool-launcher with Apache ZooKeeper; embedded: nodepool standalone")
      ->transform(CLI::CheckedTransformer(servers));
  app.add_option("--quota", settings.quota, "max-servers of the pool in mode quota")->capture_default_str();
  app.add_option("--requests", settings.requests, "how many")->capture_default_str();
  app.add_option("--rate", settings.rate, "so many a second; 0: all at once")->capture_default_str();
  app.add_option("--nodes", settings.nodes, "so many held nodes stand beside, written by us")
      ->capture_default_str();
  app.add_option("--waiting", settings.waiting, "and so many requests that cannot be served now")
      ->capture_default_str();
  app.add_option("--idle-seconds", settings.idle_seconds,
                 "first measure the idle launcher for so long; 0: do not")
      ->capture_default_str();
  app.add_flag("--tls", settings.site.tls, "the launcher talks to ZooKeeper through TLS");
  app.add_option("--figures", settings.figures,
                 "write the figures to this file, or - for standard output: name, value and unit, with tabs");
  CLI11_PARSE(app, argc, argv);
  try {
    Main(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "load_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
