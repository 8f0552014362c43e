#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/load_modes.h"
#include "bench/load_site.h"
#include "zk/wire/wire_client.h"

namespace nodepool::bench {

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
