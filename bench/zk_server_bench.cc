// The embedded ZooKeeper server beside Apache's, one after the other on the same disk, both
// answering a write when it is on disk.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "async/task_group.h"
#include "base/log/logging.h"
#include "bench/figures.h"
#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {
namespace {

using testing::ZooKeeperServer;

struct Settings {
  int count = 20'000;
  int alone = 500;
  int window = 1'000;
  int watchers = 50;
  int znodes = 100'000;
  std::size_t record_size = 500;
  std::string figures;
};

enum class Kind { kCreate, kSet, kGet };

struct Run {
  Loop& loop;
  zk::WireClient& client;
  Kind kind;
  std::string root;
  int count;
  std::string data;
  int next = 0;
  std::vector<double> milliseconds;  // of each operation
};

Task<> One(Run& run, std::string path) {
  if (run.kind == Kind::kCreate) {
    co_await run.client.Create(std::move(path), run.data, zk::CreateMode::kPersistent);
  } else if (run.kind == Kind::kSet) {
    co_await run.client.Set(std::move(path), run.data, -1);
  } else {
    co_await run.client.Get(std::move(path));
  }
}

Task<> Work(Run& run) {
  while (run.next < run.count) {
    std::string path = fmt::format("{}/{}", run.root, run.next++);
    SteadyTime start = run.loop.SteadyNow();
    co_await One(run, std::move(path));
    Duration taken = run.loop.SteadyNow() - start;
    run.milliseconds.push_back(std::chrono::duration<double, std::milli>(taken).count());
  }
}

Task<> WorkAll(Run& run, int window) {
  TaskGroup group(run.loop, log::Logger("bench"));
  for (int i = 0; i < window; ++i) group.Spawn("work", Work(run));
  co_await group.Join();
}

void Measure(Run run, int window, const std::string& name, Figures& figures) {
  SteadyTime start = run.loop.SteadyNow();
  RunToEnd(run.loop, WorkAll(run, window));
  double seconds = std::chrono::duration<double>(run.loop.SteadyNow() - start).count();
  figures.Add(name + "; rate", run.count / seconds, "per second");
  figures.Add(name + "; median", Percentile(run.milliseconds, 0.5), "ms");
  figures.Add(name + "; p99", Percentile(run.milliseconds, 0.99), "ms");
}

Task<> AwaitCount(Loop& loop, const int& heard, int wanted) {
  while (heard < wanted) co_await loop.SleepFor(std::chrono::microseconds(100));
}

// Changes of one znode that many sessions watch.
void MeasureWatches(Loop& loop, Random& random, const zk::WireOptions& options, zk::WireClient& writer,
                    const Settings& settings, const std::string& server, Figures& figures) {
  constexpr int kChanges = 200;
  int heard = 0;
  std::vector<std::unique_ptr<zk::WireClient>> watchers;
  std::vector<Subscription> registrations;
  for (int i = 0; i < settings.watchers; ++i) {
    watchers.push_back(std::make_unique<zk::WireClient>(loop, random, options));
    registrations.push_back(
        RunToEnd(loop, watchers.back()->AddWatch("/watched", zk::WatchMode::kPersistentRecursive,
                                                 [&heard](const zk::WatchEvent&) { ++heard; })));
  }
  RunToEnd(loop, writer.Create("/watched", "", zk::CreateMode::kPersistent));
  RunToEnd(loop, AwaitCount(loop, heard, settings.watchers));
  SteadyTime start = loop.SteadyNow();
  for (int i = 0; i < kChanges; ++i) {
    RunToEnd(loop, writer.Set("/watched", "x", -1));
    RunToEnd(loop, AwaitCount(loop, heard, settings.watchers * (i + 2)));
  }
  double seconds = std::chrono::duration<double>(loop.SteadyNow() - start).count();
  figures.Add(server + ": a change until all watchers know; mean", seconds / kChanges * 1e3, "ms");
  for (auto& watcher : watchers) RunToEnd(loop, watcher->Close());
}

double ResidentMegabytes(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

void RunAgainst(ZooKeeperServer::Kind kind, const Settings& settings, Figures& figures) {
  ZooKeeperServer::Options server_options;
  server_options.kind = kind;
  server_options.durable = true;
  ZooKeeperServer server(server_options);
  server.Start();
  Loop loop;
  SystemRandom random;
  zk::WireOptions options;
  options.servers = {server.address()};
  options.session_timeout = std::chrono::seconds(30);
  zk::WireClient client(loop, random, options);
  std::string name = kind == ZooKeeperServer::Kind::kApache ? "Apache" : "embedded";
  std::string data(settings.record_size, 'x');
  const char* names[] = {"create", "set", "get"};
  for (bool is_alone : {false, true}) {
    // The first round lets the server's compiler warm up.
    for (int round = 0; round < 2; ++round) {
      std::string root = fmt::format("/{}-{}", is_alone ? "alone" : "together", round);
      RunToEnd(loop, client.Create(root, "", zk::CreateMode::kPersistent));
      for (int operation = 0; operation < 3; ++operation) {
        int count = is_alone ? settings.alone : settings.count;
        int window = is_alone ? 1 : settings.window;
        Run run{loop, client, Kind(operation), root, count, data};
        if (round == 1) {
          Measure(std::move(run), window,
                  fmt::format("{}: {}, {}", name, names[operation],
                              is_alone ? "one after the other" : fmt::format("{} in progress", window)),
                  figures);
        } else {
          RunToEnd(loop, WorkAll(run, window));
        }
      }
    }
  }
  MeasureWatches(loop, random, options, client, settings, name, figures);
  RunToEnd(loop, client.Create("/many", "", zk::CreateMode::kPersistent));
  Run many{loop, client, Kind::kCreate, "/many", settings.znodes, data};
  RunToEnd(loop, WorkAll(many, settings.window));
  RunToEnd(loop, client.Close());
  double running = ResidentMegabytes(server.pid());
  server.Restart();
  figures.Add(fmt::format("{}: with {} znodes; memory", name, settings.znodes), running, "MB");
  figures.Add(name + ": the same after a restart; memory", ResidentMegabytes(server.pid()), "MB");
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  nodepool::log::SetLevel("nodepool", nodepool::log::Level::kWarning);
  nodepool::bench::Settings settings;
  CLI::App app("Compares ZooKeeper servers");
  app.add_option("--count", settings.count, "operations per pass");
  app.add_option("--window", settings.window, "operations under way at once");
  app.add_option("--znodes", settings.znodes, "for the memory");
  app.add_option("--size", settings.record_size, "bytes per record");
  using Kind = nodepool::testing::ZooKeeperServer::Kind;
  std::vector<Kind> kinds{Kind::kApache, Kind::kEmbedded};
  std::map<std::string, Kind> names{{"apache", Kind::kApache}, {"embedded", Kind::kEmbedded}};
  app.add_option("--server", kinds, "only this one")->transform(CLI::CheckedTransformer(names));
  app.add_option("--figures", settings.figures,
                 "write the figures to this file: name, value and unit, with tabs");
  CLI11_PARSE(app, argc, argv);
  nodepool::bench::Figures figures;
  for (Kind kind : kinds) nodepool::bench::RunAgainst(kind, settings, figures);
  figures.Write(settings.figures);
}
