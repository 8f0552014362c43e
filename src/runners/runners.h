#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "runners/context.h"
#include "runners/set/set_term.h"

namespace nodepool::runners {

// The daemon: contends for every set of runners that is configured, and serves those that it is elected for
// (runners.md 11).
class Runners {
 public:
  // Makes the connection to a service; `records` outlives it. Throws Error(kInvalid) when it cannot be used.
  using Connect = std::function<std::shared_ptr<ScaleSets>(const config::RunnerService& service,
                                                           const store::RunnerCache& records)>;

  // All arguments outlive it.
  Runners(Loop& loop, Random& random, metrics::Metrics& metrics, zk::Client& client, RunnerNodes& nodes,
          Connect connect, std::string hostname);
  ~Runners();  // call Stop() first

  // Ends when the caches are complete; from then on sets are served.
  Task<> Start(const std::vector<config::RunnerService>& services);

  // Puts other services and sets in force. Those that are gone drain.
  void Reconfigure(const std::vector<config::RunnerService>& services);

  // Closes the sessions and leaves the elections; runners and their jobs go on. May be called again once the
  // client is closed.
  Task<> Stop();

 private:
  struct Member;
  struct Connection {
    config::RunnerService settings;  // without its sets
    std::shared_ptr<ScaleSets> service;
  };

  std::shared_ptr<ScaleSets> ConnectionTo(const config::RunnerService& service);
  void Configure(const config::RunnerService& service, const config::RunnerSet& set, bool is_draining);
  void DrainOthers(const std::vector<config::RunnerService>& services);
  Task<> Contend(Member& member);
  Task<> Lead(Member& member);

  log::Logger logger_;
  store::Store store_;
  store::LeaseCache leases_;
  store::RunnerCache runners_;
  Context context_;
  Connect connect_;
  bool is_serving_ = false;
  std::map<std::string, Connection> connections_;  // by the service's name
  std::map<store::RunnerSetKey, std::unique_ptr<Member>> members_;
  TaskGroup tasks_;
};

}  // namespace nodepool::runners
