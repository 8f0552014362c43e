// A steady stream of requests to a running launcher, for as long as wanted; a line a minute says how they
// were served. bench/soak.py watches the processes meanwhile.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/ids.h"
#include "bench/load_client.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {
namespace {

constexpr int kSecondsPerLine = 60;

struct Settings {
  int port = 2181;
  int seconds = 3600;
  double rate = 40;
  std::string label = "small";
};

void Print(int second, const std::vector<Timeline>& timelines) {
  std::vector<double> latencies;
  for (const Timeline& timeline : timelines) latencies.push_back(timeline.fulfilled - timeline.created);
  std::ranges::sort(latencies);
  auto at = [&](double share) {
    return 1e3 * latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))];
  };
  auto failed = std::ranges::count_if(timelines, &Timeline::is_failed);
  fmt::print("{} {} {} {:.0f} {:.0f} {:.0f}\n", second, timelines.size(), failed, at(0.5), at(0.99), at(1));
  std::fflush(stdout);
}

Task<> Soak(zk::WireClient& client, LoadClient& load, Settings settings) {
  co_await load.Start();
  for (int second = 0; second < settings.seconds; second += kSecondsPerLine) {
    int seconds = std::min(kSecondsPerLine, settings.seconds - second);
    int count = std::max(1, static_cast<int>(settings.rate * seconds));
    Load requests{.count = count, .rate = settings.rate, .labels = {LabelName(settings.label)}};
    std::vector<Timeline> timelines = co_await load.Run(requests);
    Print(second + seconds, timelines);
  }
  co_await load.Stop();
  co_await client.Close();
}

void Main(const Settings& settings) {
  Loop loop;
  SystemRandom random;
  zk::WireOptions wire;
  wire.servers = {{"127.0.0.1", settings.port}};
  zk::WireClient client(loop, random, wire);
  LoadClient load(loop, client, random);
  RunToEnd(loop, Soak(client, load, settings));
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  nodepool::bench::Settings settings;
  CLI::App app(
      "Sends requests at a steady rate; prints for each minute: second, requests, failed ones, and the "
      "median, "
      "99th percentile and maximum from creation to fulfilment in ms");
  app.add_option("--port", settings.port, "of ZooKeeper on this machine")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "how long")->capture_default_str();
  app.add_option("--rate", settings.rate, "requests a second")->capture_default_str();
  app.add_option("--label", settings.label, "of the nodes")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  nodepool::bench::Main(settings);
  return 0;
}
