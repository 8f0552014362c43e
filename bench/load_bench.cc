// The launcher under load, as a whole process on a private ZooKeeper: latency from
// a request's creation to its fulfilment, throughput, CPU, memory and ZooKeeper
// writes. The simulated cloud boots in no time, so all that is measured is ours.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "base/log/logging.h"
#include "bench/load_run.h"

namespace nodepool::bench {
namespace {

struct Settings {
  LoadSiteOptions site;
  LoadSettings load;
  int quota = 100;
  std::string figures;
};

void Main(Settings settings) {
  if (FindLoadMode(settings.load.mode)->is_limited) settings.site.max_servers = settings.quota;
  settings.site.has_silent_host = settings.load.waiting > 0;
  LoadSite site(settings.site);
  Loop loop;
  SystemRandom random;
  zk::WireOptions wire;
  wire.servers = {site.address()};
  zk::WireClient client(loop, random, wire);
  LoadRun run(loop, client, site.daemon(), settings.load);
  RunToEnd(loop, run.Run());
  run.figures().Write(settings.figures);
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  using namespace nodepool::bench;
  nodepool::log::SetLevel("nodepool", nodepool::log::Level::kError);
  Settings settings;
  settings.site.programs = std::filesystem::path(argv[0]).parent_path();
  CLI::App app("Loads a launcher with node requests and reports what it costs");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--programs", settings.site.programs, "folder of the programs to measure")
      ->capture_default_str();
  app.add_option("--mode", settings.load.mode, "what is measured:" + LoadModesHelp())
      ->check([](const std::string& name) { return FindLoadMode(name) ? "" : "there is no mode " + name; })
      ->capture_default_str();
  std::map<std::string, Server> servers{{"apache", Server::kApache}, {"embedded", Server::kEmbedded}};
  app.add_option("--server", settings.site.server,
                 "apache: nodepool-launcher with Apache ZooKeeper; embedded: nodepool standalone")
      ->transform(CLI::CheckedTransformer(servers));
  app.add_option("--quota", settings.quota, "max-servers of the pool in mode quota")->capture_default_str();
  app.add_option("--requests", settings.load.requests, "how many")->capture_default_str();
  app.add_option("--rate", settings.load.rate, "so many a second; 0: all at once")->capture_default_str();
  app.add_option("--warm-up", settings.load.warm_up, "requests before the measured ones")
      ->capture_default_str();
  app.add_option("--nodes", settings.load.nodes, "so many held nodes are there, written by us")
      ->capture_default_str();
  app.add_option("--waiting", settings.load.waiting, "and so many requests that cannot be served now")
      ->capture_default_str();
  app.add_option("--idle-seconds", settings.load.idle_seconds,
                 "first measure the idle launcher for so long; 0: do not")
      ->capture_default_str();
  app.add_flag("!--no-breaker", settings.site.has_breaker, "the provider has no breaker");
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
