#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema/section.h"
#include "drivers/libvirt/config/host_place.h"
#include "drivers/libvirt/config/share.h"

namespace nodepool::drivers::libvirt {

enum class Accelerator { kAuto, kKvm, kTcg };

// A host of a provider, with the provider's settings where it has none of its own.
struct HostConfig {
  std::string name;
  std::string uri;  // may contain a password
  StoragePool storage_pool;
  std::string address;  // where its forwarded ports are reached
  MachineNetwork network;
  std::optional<NewNetwork> new_network;  // `network` where it may have to be made
  Accelerator accelerator = Accelerator::kAuto;
  Share cores{100, true};
  std::optional<Share> memory;  // MiB; none: all but a reserve for the host itself
  Share disk{90, true};         // GiB
  std::optional<int> instances;
  int min_free_disk = 5;  // GiB
  bool is_paused = false;
};

// The provider's `hosts`, or the one host at its `uri`. Error(kInvalid) names line and column.
std::vector<HostConfig> ReadHosts(const config::Section& provider);

}  // namespace nodepool::drivers::libvirt
