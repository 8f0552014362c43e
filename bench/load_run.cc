#include "bench/load_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/testing/test_environment.h"

namespace nodepool::bench {

namespace {

constexpr LoadMode kModes[] = {
    {.name = "launch", .help = "each request gets a new node, which is used and deleted"},
    {.name = "reuse",
     .help = "the nodes are ready before; measured until the requests are fulfilled",
     .before = Afterwards::kKeepReady,
     .after = Afterwards::kNothing},
    {.name = "sets", .help = "each request gets three new nodes", .nodes_per_request = 3},
    {.name = "held",
     .help = "as launch, beside as many nodes that requests before have left in hold",
     .before = Afterwards::kHold},
    {.name = "quota",
     .help = "as launch, in a pool with max-servers: the crowd is served in waves",
     .is_limited = true},
};

}  // namespace

std::span<const LoadMode> LoadModes() { return kModes; }

const LoadMode* FindLoadMode(std::string_view name) {
  auto mode = std::ranges::find(kModes, name, &LoadMode::name);
  return mode == std::end(kModes) ? nullptr : mode;
}

std::string LoadModesHelp() {
  std::string text;
  for (const LoadMode& mode : kModes) text += fmt::format("\n{}: {}", mode.name, mode.help);
  return text;
}

namespace {

std::string ReadAll(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

DaemonProcess::DaemonProcess(std::vector<std::string> words, const std::string& log) : log_(log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int file = open(log_.c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

DaemonProcess::~DaemonProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

void DaemonProcess::AssertRunning() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) != pid_) return;
  pid_ = 0;
  std::string log = ReadAll(log_);
  throw std::runtime_error("the program ended: " +
                           log.substr(log.size() - std::min<std::size_t>(log.size(), 4000)));
}

CpuTime DaemonProcess::Cpu() const {
  std::string text = ReadAll(fmt::format("/proc/{}/stat", pid_));
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
  // Fields 14 and 15 of proc(5), counted after the command's closing bracket.
  auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {std::stod(values.at(11)) / ticks, std::stod(values.at(12)) / ticks};
}

double DaemonProcess::Status(const std::string& key) const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size())) / 1024;
  }
  return 0;
}

double DaemonProcess::PeakMegabytes() const { return Status("VmHWM:"); }

double DaemonProcess::ResidentMegabytes() const { return Status("VmRSS:"); }

namespace {

constexpr std::string_view kLoopback = "127.0.0.1";

std::string MakeDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "nodepool-load-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
  return name;
}

// A pool that serves nobody.
constexpr const char* kSilentHost = R"(
  - name: nowhere
    driver: static
    pools:
      - name: main
        nodes: [{name: 127.0.0.1, connection-port: 1, labels: waiting}]
)";

// The labels and their clouds.
std::string Clouds(const LoadSiteOptions& options) {
  std::string limit = options.max_servers < 0 ? "" : fmt::format("max-servers: {}", options.max_servers);
  return fmt::format(R"(
webapp: {{listen_address: 127.0.0.1, port: 0}}
labels:
  - name: small
  - name: waiting
providers:
  - name: fake-load
    driver: fake
    breaker: {}
    cloud: simulated
    cloud-images: [{{name: image, image-name: Fake Precise}}]
    pools:
      - name: main
        {}
        labels: [{{name: small, cloud-image: image, flavor-name: Fake Flavor}}]
    simulation:
      create-latency: 0.0
      delete-latency: 0.0
      limits: {{cores: -1, instances: -1, ram: -1}}{}
)",
                     options.has_breaker, limit, options.has_silent_host ? kSilentHost : "");
}

}  // namespace

LoadSite::LoadSite(const LoadSiteOptions& options) : directory_(MakeDirectory()) {
  if (options.server == Server::kEmbedded) {
    if (options.tls) throw std::runtime_error("TLS is only for Apache ZooKeeper");
    address_ = {std::string(kLoopback), testing::FreePort()};
  } else {
    testing::ZooKeeperServer::Options server;
    server.kind = testing::ZooKeeperServer::Kind::kApache;
    server.tick_time = 2000;
    server.min_session_timeout = 4000;
    server.tls = options.tls;
    server_.emplace(server);
    server_->Start();
    address_ = server_->address();
  }
  std::string file = directory_ + "/nodepool.yaml";
  std::ofstream(file) << Connection(options) << Clouds(options);
  std::vector<std::string> words{options.programs + "/nodepool-launcher", "-f", "-c", file};
  if (options.server == Server::kEmbedded) {
    words = {options.programs + "/nodepool", "standalone", "-c", file};
  }
  daemon_.emplace(std::move(words), directory_ + "/log");
}

LoadSite::~LoadSite() {
  daemon_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string LoadSite::Connection(const LoadSiteOptions& options) const {
  if (!server_) {
    return fmt::format("embedded-zookeeper: {{state-dir: {}/state, port: {}}}", directory_, address_.port);
  }
  if (!options.tls)
    return fmt::format("zookeeper-servers: [{{host: {}, port: {}}}]", kLoopback, server_->port());
  zk::TlsFiles own = server_->client_files();
  return fmt::format(
      "zookeeper-servers: [{{host: {}, port: {}}}]\nzookeeper-tls: {{cert: {}, key: {}, ca: {}}}", kLoopback,
      server_->tls_port(), own.cert, own.key, own.ca);
}

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
