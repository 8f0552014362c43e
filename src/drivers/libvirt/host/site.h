#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/provider_environment.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/keys/provider_key.h"
#include "drivers/libvirt/placement/full_labels.h"
#include "drivers/libvirt/placement/ledger.h"
#include "drivers/libvirt/storage/arrivals.h"
#include "drivers/libvirt/storage/fetches.h"
#include "drivers/libvirt/storage/image_sizes.h"
#include "drivers/libvirt/storage/old_fetches.h"
#include "drivers/libvirt/warm/warm_start.h"

namespace nodepool::drivers::libvirt {

using MakeHypervisor = std::function<std::unique_ptr<Hypervisor>(const HostConfig&)>;

// What creations, deletions and lists of one provider share: its hosts, and what is under way on them.
struct Site {
  Site(driver::ProviderEnvironment for_environment, std::shared_ptr<const LibvirtConfig> provider,
       const MakeHypervisor& make);

  driver::ProviderEnvironment environment;
  std::shared_ptr<const LibvirtConfig> config;
  log::Logger logger{"nodepool.driver.libvirt." + config->name.value};
  TaskGroup tasks;
  std::vector<std::unique_ptr<Host>> hosts;
  Ledger ledger;
  FullLabels full_labels;
  ImageSizes image_sizes;
  Arrivals arrivals;
  Fetches fetches{*this};
  OldFetches old_fetches{*config, logger};
  ProviderKey key;
  WarmTemplates warm_templates;

  // Set by the owner; called when a host announces that domains of others have started or ended there.
  std::function<void()> foreign_changed = [] {};

  // Connects to every host unless that has begun; ends when each was tried once. To be awaited before hosts
  // are used. No host is contacted before.
  Task<> Connected();
  // Error(kFail): the configuration no longer has this host.
  Host& At(const std::string& name);
  std::vector<Host*> Usable();
  // The machine takes no room of its host any more.
  void Forget(const MachineId& id);
  Task<> Stop();

 private:
  // A host can be used, or no longer.
  void Changed();
  void ForeignChanged();
  void Report(const Host& host);

  bool is_stopped_ = false;
};

}  // namespace nodepool::drivers::libvirt
