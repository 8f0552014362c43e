#pragma once

#include <string>

#include "base/find_or_empty.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "drivers/libvirt/host/site.h"
#include "drivers/libvirt/keys.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

// Chooses a host, makes the machine's volumes there, starts it and waits for its address (driver-libvirt.md
// 6). Its id is stored before anything is made; what a failure leaves is removed by DeleteMachine.
Task<driver::cloud::Instance> CreateMachine(Site& site, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// A machine that is being made: its host is chosen and its id stored.
struct Creation {
  Site& site;
  Host& host;
  MachineId id;
  const LibvirtLabel& label;
  const driver::cloud::CreateParameters& parameters;
  Need need;
  std::optional<SshKey> host_key;  // that the machine gets; none: it makes its own

  const MachineNetwork& network() const { return label.network ? *label.network : host.config().network; }

  std::string VolumeName(const char* part) const {
    std::string node = FindOrEmpty(parameters.metadata, driver::cloud::kNodeKey);
    return NameOf(MachineVolume{site.config->name.str(), std::move(node), id.digits(), part});
  }

  // Awaits step(hypervisor), a call that makes something of the machine and may be carried out twice: again
  // where the connection was lost meanwhile; to its end although this task is cancelled.
  template <class Step>
  auto Do(Step step) {
    auto run = [this, step = std::move(step)](Hypervisor& hypervisor) {
      return host.work().Run(id.uuid, step(hypervisor));
    };
    return host.AcrossLosses(std::move(run));
  }
};

}  // namespace nodepool::drivers::libvirt
