#pragma once

#include <map>
#include <string>

#include "base/ids.h"
#include "drivers/libvirt/names/machine_id.h"
#include "drivers/libvirt/placement/placement.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
