#pragma once

#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/names.h"

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

}  // namespace nodepool::drivers::libvirt
