#include "bench/load_run.h"

namespace nodepool::bench {

LoadRun::LoadRun(Loop& loop, zk::WireClient& client, DaemonProcess& daemon, LoadSettings settings)
    : loop_(loop),
      client_(client),
      daemon_(daemon),
      settings_(std::move(settings)),
      mode_(*FindLoadMode(settings_.mode)),
      store_(loop, client, random_) {}

Task<> LoadRun::Run() {
  co_await AwaitServing();
  co_await Furnish();
  if (settings_.idle_seconds > 0) co_await Idle();
  if (settings_.requests > 0) co_await MeasureLoad();
  co_await client_.Close();
}

Task<> LoadRun::AwaitServing() {
  std::size_t pool_count = settings_.waiting > 0 ? 2 : 1;
  while (true) {
    daemon_.AssertRunning();
    auto pools = co_await client_.GetChildren("/nodepool/components/pool");
    if (pools && pools->names.size() == pool_count) co_return;
    co_await loop_.SleepFor(std::chrono::milliseconds(50));
  }
}

Task<> LoadRun::Furnish() {
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

Task<> LoadRun::Idle() {
  co_await loop_.SleepFor(std::chrono::seconds(3));
  CpuTime before = daemon_.Cpu();
  co_await loop_.SleepFor(std::chrono::seconds(settings_.idle_seconds));
  double used = (daemon_.Cpu() - before).total();
  figures_.Add("launcher CPU when idle", 100 * used / settings_.idle_seconds, "% of a core");
  figures_.Add("launcher peak memory when idle", daemon_.PeakMegabytes(), "MB");
}

Load LoadRun::LoadOf(int count, Afterwards afterwards) const {
  std::vector<LabelName> labels(static_cast<std::size_t>(mode_.nodes_per_request), LabelName("small"));
  return {.count = count, .labels = std::move(labels), .afterwards = afterwards};
}

Task<> LoadRun::MeasureLoad() {
  LoadClient load(loop_, client_, random_);
  co_await load.Start();
  // The first request makes the directories.
  co_await load.Run(LoadOf(1, Afterwards::kUse));
  co_await load.Run(LoadOf(settings_.warm_up, Afterwards::kUse));
  co_await AwaitNodes(settings_.nodes);
  int left = settings_.nodes;
  if (mode_.before) {
    co_await load.Run(LoadOf(settings_.requests, *mode_.before));
    left += settings_.requests * mode_.nodes_per_request;
    co_await AwaitNodes(left);
  }
  co_await AwaitQuiet();
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

Task<> LoadRun::AwaitNodes(int count) {
  while (true) {
    daemon_.AssertRunning();
    auto nodes = co_await client_.GetChildren("/nodepool/nodes");
    auto locks = co_await client_.GetChildren("/nodepool/requests-lock");
    bool are_nodes_gone = !nodes || nodes->names.size() <= static_cast<std::size_t>(count);
    if (are_nodes_gone && (!locks || locks->names.empty())) co_return;
    co_await loop_.SleepFor(std::chrono::milliseconds(20 + count / 50));
  }
}

Task<> LoadRun::AwaitQuiet() {
  std::int64_t seen = co_await Zxid();
  while (true) {
    co_await loop_.SleepFor(std::chrono::milliseconds(500));
    std::int64_t now = co_await Zxid();
    if (now == seen + 1) co_return;
    seen = now;
  }
}

Task<std::int64_t> LoadRun::Zxid() {
  auto created =
      co_await zk::CreateWithParents(client_, "/bench/mark-", "", zk::CreateMode::kEphemeralSequential);
  co_return created->stat.czxid;
}

void LoadRun::AddTimes(const std::vector<Timeline>& timelines) {
  std::vector<double> latencies, answers;
  double first = 1e9, last = 0;
  int failed = 0;
  for (const Timeline& timeline : timelines) {
    failed += timeline.is_failed ? 1 : 0;
    answers.push_back(1e3 * (timeline.answered - timeline.created));
    latencies.push_back(1e3 * (timeline.fulfilled - timeline.created));
    first = std::min(first, timeline.created);
    last = std::max(last, timeline.fulfilled);
  }
  figures_.Add("failed requests", failed, "");
  figures_.Add("created to the server's answer, least", Percentile(answers, 0), "ms");
  figures_.Add("created to the server's answer, p50", Percentile(answers, 0.5), "ms");
  figures_.Add("created to fulfilled, least", Percentile(latencies, 0), "ms");
  figures_.Add("created to fulfilled, p50", Percentile(latencies, 0.5), "ms");
  figures_.Add("created to fulfilled, p99", Percentile(latencies, 0.99), "ms");
  figures_.Add("created to fulfilled, most", Percentile(latencies, 1), "ms");
  figures_.Add("requests per second", static_cast<double>(timelines.size()) / (last - first), "");
}

}  // namespace nodepool::bench
