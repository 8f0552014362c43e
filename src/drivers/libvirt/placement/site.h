#pragma once

#include <expected>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_config.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/seed.h"
#include "drivers/libvirt/storage/boot_image.h"
#include "drivers/libvirt/warm/warm_start.h"

namespace nodepool::drivers::libvirt {

// What machines take of a host.
struct Need {
  double instances = 1;
  double cores = 0;
  double memory = 0;  // MiB
  double disk = 0;    // GiB

  void Add(const Need& other) {
    instances += other.instances;
    cores += other.cores;
    memory += other.memory;
    disk += other.disk;
  }
};

// A host as placement sees it.
struct HostRoom {
  std::string name;
  std::string unusable;  // why no machine can be made there; empty: it can
  Need limit;            // instances may be infinite
  Need used;             // by what runs, is being made and is being deleted there
  // Whether the image is there, or can be copied from another host.
  bool has_image = true;
  bool can_get_image = false;
};

// Why no host was chosen.
struct NoHost {
  bool is_forever = false;  // no host is large enough even when it is empty
  std::string reasons;      // of each host: "b: 2 of 8 cores free, needs 4"
};

// The host for a machine: among those that have room for it and can have its image, one that has the image,
// then the one that is used least (spread) or most (pack) by its scarcest resource, then by name. Pure.
std::expected<std::string, NoHost> ChooseHost(const std::vector<HostRoom>& hosts, const Need& need,
                                              Placement placement);

// What this process has made, or is about to make, and has not deleted yet. So that room is not given away
// twice before a host's list shows a machine.
class Ledger {
 public:
  struct Entry {
    std::string host;
    std::string node;  // its id
    RequestId request;
    Need need;
    int port = 0;  // of the host, forwarded to the machine; 0: none
  };

  void Add(const MachineId& id, std::string node, RequestId request, Need need) {
    entries_[id.uuid] = {id.host, std::move(node), std::move(request), need};
  }
  void SetPort(const MachineId& id, int port) { entries_.at(id.uuid).port = port; }
  void Remove(const MachineId& id) { entries_.erase(id.uuid); }

  const std::map<std::string, Entry>& entries() const { return entries_; }  // by UUID
  // Null: not made by this process.
  const Entry* Find(const MachineId& id) const {
    auto found = entries_.find(id.uuid);
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Entry> entries_;
};

// Labels for which no host had room. They are not tried again before a host's room has grown, a host came up,
// or half a minute is over (driver-libvirt.md 13.2).
class FullLabels {
 public:
  void Add(const LabelName& label, SteadyTime now) { since_[label] = now; }
  // Ends when the label may be tried; at once unless it was added.
  Task<> AwaitChance(Loop& loop, LabelName label);
  // A host has more room, or can be used.
  void RoomHasGrown();

 private:
  std::map<LabelName, SteadyTime> since_;
  WaitList growth_;
};

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

// Metadata of a domain: the virtual size of its disk in GiB.
inline constexpr const char* kDiskKey = "nodepool_disk";

// What a machine of the label takes. Error(kRetry): the size of its image is not known yet.
Need NeedOf(const LibvirtConfig& config, const ImageSizes& sizes, const LibvirtLabel& label);
// What a domain takes. The disk of a foreign one is not known.
Need NeedOf(const DomainInfo& domain);
driver::QuotaInformation ToQuota(const Need& need);

// What machines may take of the host together; `capacity` is its storage pool's, in bytes.
Need LimitOf(const HostConfig& config, const HostSize& size, std::uint64_t capacity);

// Each host as placement sees it for a machine of the label. What is chosen goes into the ledger before
// anything else is awaited.
Task<std::vector<HostRoom>> ReadRooms(Site& site, const LibvirtPool& pool, const LibvirtLabel& label,
                                      std::optional<std::string> image_external_id);

// The sum of the limits of all usable hosts; storage that several share counts once. Throws the first host's
// fault where none is usable.
Task<Need> SumOfLimits(const Hosts& all);

// Whether the machines of the label have to be on the host of the request's other nodes.
SameHost SameHostFor(const LibvirtConfig& config, const LibvirtLabel& label);

// The host for a machine that takes `need` (driver-libvirt.md 13.3). The caller enters it in the ledger
// before it awaits anything else. kQuota: there is no room now; the label's next call waits for more room
// first, half a minute at most. kInvalid: no host is large enough.
Task<Host*> ChooseHostFor(Site& site, const driver::cloud::CreateParameters& parameters, Need need);

}  // namespace nodepool::drivers::libvirt
