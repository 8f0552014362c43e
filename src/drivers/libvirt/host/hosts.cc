#include "drivers/libvirt/host/hosts.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::drivers::libvirt {

Hosts::Hosts(TaskGroup& tasks, Random& random, const LibvirtConfig& config, const MakeHypervisor& make,
             const log::Logger& logger, HostListener& listener)
    : provider_(config.name.str()) {
  for (const HostConfig& host : config.hosts) {
    hosts_.push_back(std::make_unique<Host>(tasks, random, host, make, logger, listener));
  }
}

Task<> Hosts::Connected() {
  for (const auto& host : hosts_) host->Start();
  for (const auto& host : hosts_) co_await host->Tried();
}

Host& Hosts::At(const std::string& name) const {
  auto found = std::ranges::find_if(hosts_, [&](const auto& host) { return host->name() == name; });
  if (found != hosts_.end()) return **found;
  throw Error(Verdict::kFail,
              fmt::format("provider {} no longer has the host {}; add it again to its section, or "
                          "remove what is left there by hand",
                          provider_, name));
}

std::vector<Host*> Hosts::Usable() const {
  std::vector<Host*> usable;
  for (const auto& host : hosts_) {
    if (!host->fault()) usable.push_back(host.get());
  }
  return usable;
}

Task<> Hosts::Stop() {
  for (const auto& host : hosts_) co_await host->Stop();
}

}  // namespace nodepool::drivers::libvirt
