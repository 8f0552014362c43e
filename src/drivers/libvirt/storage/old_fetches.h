#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// Deletes fetched images that the configuration no longer has, e.g. since their checksum has changed
// (driver-libvirt.md 12.5).
class OldFetches {
 public:
  // `config` outlives this object.
  OldFetches(const LibvirtConfig& config, log::Logger logger) : config_(config), logger_(std::move(logger)) {}

  // Deletes from the host what was in its lists of volumes, and not in the configuration, for two hours: as
  // long as another process may need to fetch it. What machines run from stays. `volumes` is the host's list
  // of `now`.
  Task<> Delete(Host& host, std::vector<VolumeInfo> volumes, SteadyTime now);

 private:
  using Key = std::pair<std::string, std::string>;  // host and volume

  bool IsOld(const std::string& volume) const;
  Task<> DeleteOne(Host& host, std::string volume);

  const LibvirtConfig& config_;
  log::Logger logger_;
  std::map<Key, SteadyTime> since_;  // when each was first seen
};

}  // namespace nodepool::drivers::libvirt
