// Our ZooKeeper client beside Apache's C client: pipelined create, set and get of
// records against one private server, the two taking turns.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <vector>

#include "async/loop.h"
#include "async/task_group.h"
#include "bench/figures.h"
#include "bench/zk_c_client.h"
#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {
namespace {

struct Settings {
  int count = 20'000;
  int window = 1'000;
  int rounds = 5;
  std::size_t record_size = 500;
  std::string figures;
};

enum class Kind { kCreate, kSet, kGet };

// One of `window` tasks that share the work.
Task<> Work(zk::WireClient& client, Kind kind, std::string root, int& next, int count,
            const std::string& data) {
  while (next < count) {
    std::string path = fmt::format("{}/{}", root, next++);
    bool is_done = false;
    if (kind == Kind::kCreate) {
      auto created = co_await client.Create(std::move(path), data, zk::CreateMode::kPersistent);
      is_done = created.has_value();
    } else if (kind == Kind::kSet) {
      auto stat = co_await client.Set(std::move(path), data, -1);
      is_done = stat.has_value();
    } else {
      auto node = co_await client.Get(std::move(path));
      is_done = node && node->data.size() == data.size();
    }
    if (!is_done) throw std::runtime_error("an operation failed");
  }
}

Task<> WorkAll(Loop& loop, zk::WireClient& client, Kind kind, std::string root, Settings settings,
               std::string data) {
  TaskGroup group(loop, log::Logger("bench"));
  int next = 0;
  for (int i = 0; i < settings.window; ++i) {
    group.Spawn("work", Work(client, kind, root, next, settings.count, data));
  }
  co_await group.Join();
}

// What one pass took: the time on the wall, and the processor time of this process.
struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;
};

template <class Pass>
Cost Measure(Loop& loop, Pass pass) {
  SteadyTime start = loop.SteadyNow();
  std::clock_t cpu = std::clock();
  pass();
  double cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  return {std::chrono::duration<double>(loop.SteadyNow() - start).count(), cpu_seconds};
}

Cost Median(std::vector<Cost> costs) {
  std::sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) { return a.seconds < b.seconds; });
  return costs[costs.size() / 2];
}

void Run(Settings settings) {
  testing::ZooKeeperServer server;
  server.Start();
  Loop loop;
  SystemRandom random;
  zk::WireOptions options;
  options.servers = {server.address()};
  options.session_timeout = std::chrono::seconds(30);
  zk::WireClient ours(loop, random, options);
  CClient theirs(fmt::format("127.0.0.1:{}", server.port()));
  std::string data(settings.record_size, 'x');

  std::vector<Cost> our_costs[3], their_costs[3];
  for (int round = -1; round < settings.rounds; ++round) {  // the first warms up the server
    for (bool is_ours : {round % 2 == 0, round % 2 != 0}) {
      std::string root = fmt::format("/{}{}", is_ours ? "ours" : "theirs", round);
      RunToEnd(loop, ours.Create(root, "", zk::CreateMode::kPersistent));
      for (int kind = 0; kind < 3; ++kind) {
        Cost cost = Measure(loop, [&] {
          if (is_ours) return RunToEnd(loop, WorkAll(loop, ours, Kind(kind), root, settings, data));
          if (kind == 0) return theirs.CreateAll(root, settings.count, settings.window, data);
          if (kind == 1) return theirs.SetAll(root, settings.count, settings.window, data);
          theirs.GetAll(root, settings.count, settings.window);
        });
        if (round >= 0) (is_ours ? our_costs : their_costs)[kind].push_back(cost);
      }
    }
  }
  RunToEnd(loop, ours.Close());

  fmt::print("{} operations on records of {} bytes, {} under way, medians of {} rounds\n", settings.count,
             settings.record_size, settings.window, settings.rounds);
  Figures figures;
  const char* names[] = {"create", "set", "get"};
  auto count = static_cast<double>(settings.count);
  for (int kind = 0; kind < 3; ++kind) {
    Cost our = Median(our_costs[kind]);
    Cost their = Median(their_costs[kind]);
    figures.Add(fmt::format("{}; ours", names[kind]), count / our.seconds, "per second");
    figures.Add(fmt::format("{}; C client", names[kind]), count / their.seconds, "per second");
    figures.Add(fmt::format("{}; CPU, ours", names[kind]), our.cpu_seconds / count * 1e6, "µs");
    figures.Add(fmt::format("{}; CPU, C client", names[kind]), their.cpu_seconds / count * 1e6, "µs");
  }
  figures.Write(settings.figures);
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  nodepool::bench::Settings settings;
  CLI::App app("Compares ZooKeeper clients");
  app.add_option("--count", settings.count, "operations per pass");
  app.add_option("--window", settings.window, "operations under way at once");
  app.add_option("--rounds", settings.rounds, "passes of each client");
  app.add_option("--size", settings.record_size, "bytes per record");
  app.add_option("--figures", settings.figures,
                 "write the figures to this file: name, value and unit, with tabs");
  CLI11_PARSE(app, argc, argv);
  nodepool::bench::Run(settings);
}
