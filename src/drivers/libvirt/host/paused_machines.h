#pragma once

#include <map>
#include <string>
#include <vector>

namespace nodepool::drivers::libvirt {

// The machines of a host that QEMU has paused, since their disks could not be written, and libvirt's word for
// why.
class PausedMachines {
 public:
  void Add(const std::string& uuid, std::string reason) { reasons_[uuid] = std::move(reason); }
  void Remove(const std::string& uuid) { reasons_.erase(uuid); }

  // Null: it is not paused.
  const std::string* ReasonOf(const std::string& uuid) const {
    auto found = reasons_.find(uuid);
    return found == reasons_.end() ? nullptr : &found->second;
  }
  // The UUIDs of those that lack room on the host's disk.
  std::vector<std::string> LackingRoom() const {
    std::vector<std::string> uuids;
    for (const auto& [uuid, reason] : reasons_) {
      if (reason == "enospc") uuids.push_back(uuid);
    }
    return uuids;
  }

 private:
  std::map<std::string, std::string> reasons_;  // by UUID
};

}  // namespace nodepool::drivers::libvirt
