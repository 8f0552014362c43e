#pragma once

#include <string>

#include "daemon/runtime.h"
#include "net/http/http_client.h"
#include "runners/node/runner_nodes.h"
#include "runners/runners.h"

namespace nodepool {

// The runners of CI services as a part of a daemon, with its dependencies.
class RunnersPart : public daemon::Part {
 public:
  // Both outlive it.
  RunnersPart(daemon::Runtime& runtime, zk::Client& client);

  Task<> Start() override { return runners_.Start(runtime_.config->common.runners); }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    runners_.Reconfigure(config->common.runners);
  }
  Task<> Stop() override { return runners_.Stop(); }

 private:
  daemon::Runtime& runtime_;
  net::CurlClient http_;
  runners::SshNodes nodes_;
  runners::Runners runners_;
};

}  // namespace nodepool
