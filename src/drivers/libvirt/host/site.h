#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/cloud/framework.h"
#include "drivers/libvirt/host/hosts.h"
#include "drivers/libvirt/keys.h"
#include "drivers/libvirt/placement/placement.h"
#include "drivers/libvirt/storage/boot_image.h"
#include "drivers/libvirt/storage/fetches.h"
#include "drivers/libvirt/warm/warm_start.h"

namespace nodepool::drivers::libvirt {

// What creations, deletions and lists of one provider share: its hosts, and what is under way on them.
struct Site : private HostListener {
  Site(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const LibvirtConfig> provider,
       const MakeHypervisor& make);

  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const LibvirtConfig> config;
  log::Logger logger{"nodepool.driver.libvirt." + config->name.value};
  TaskGroup tasks;
  Hosts hosts;
  Ledger ledger;
  FullLabels full_labels;
  ImageSizes image_sizes;
  Arrivals arrivals;
  Fetches fetches{*this};
  OldFetches old_fetches{*config, logger};
  ProviderKey key;
  WarmTemplates warm_templates;

  // The machine takes no room of its host any more.
  void Forget(const MachineId& id);
  Task<> Stop();

 private:
  void HostChanged(Host& host) override;
  void HostMeasured(Host& host) override;
  void ForeignChanged(Host& host) override;
  void MachineLost(Host& host) override;
  void CallEnded(Host& host, const char* call, Duration took, bool is_ok) override;

  bool is_stopped_ = false;
};

}  // namespace nodepool::drivers::libvirt
