#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt::testing {

// Keeps what a connection to a host tells.
struct HostRecorder : HypervisorListener {
  void ConnectionLost(std::string why) override { losses.push_back(std::move(why)); }
  void DomainStarted(std::string) override {}
  void DomainEnded(std::string) override {}
  void DomainPaused(std::string, std::string) override {}
  void CallEnded(const char* call, Duration, bool is_ok) override {
    calls.push_back(fmt::format("{} {}", call, is_ok));
  }

  std::vector<std::string> losses;
  std::vector<std::string> calls;  // "size true"
};

}  // namespace nodepool::drivers::libvirt::testing
