#pragma once

#include <memory>
#include <string>
#include <vector>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// The hosts of one provider, in the order of the configuration; at least one.
class Hosts {
 public:
  // Everything outlives it. No host is contacted before Connected().
  Hosts(TaskGroup& tasks, Random& random, const LibvirtConfig& config, const MakeHypervisor& make,
        const log::Logger& logger, HostListener& listener);

  auto begin() const { return hosts_.begin(); }
  auto end() const { return hosts_.end(); }
  std::size_t size() const { return hosts_.size(); }
  Host& operator[](std::size_t index) const { return *hosts_[index]; }

  // Connects to every host unless that has begun; ends when each was tried once. To be awaited before hosts
  // are used.
  Task<> Connected();
  // Error(kFail): the configuration no longer has this host.
  Host& At(const std::string& name) const;
  std::vector<Host*> Usable() const;
  Task<> Stop();

 private:
  std::string provider_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace nodepool::drivers::libvirt
