#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "drivers/libvirt/config/libvirt_config.h"

namespace nodepool::drivers::libvirt {

class Host;

// Which volumes of the provider's cloud images the hosts have, and how large they are.
class ImageSizes {
 public:
  // `config` outlives this object.
  explicit ImageSizes(const LibvirtConfig& config) : config_(config) {}

  // Asks the hosts; what cannot be read now stays as it was. Returns whether something has changed.
  Task<bool> Refresh(std::vector<Host*> hosts);
  // Asks the hosts if none was asked before.
  Task<> Known(std::vector<Host*> hosts);

  // Whether a host was asked.
  bool is_known() const { return is_known_; }
  // Bytes of the largest copy; nullopt: no host is known to have the volume.
  std::optional<std::uint64_t> Find(const std::string& volume) const;
  bool IsOn(const std::string& host, const std::string& volume) const;

 private:
  using Sizes = std::map<std::string, std::map<std::string, std::uint64_t>>;  // by volume and host

  bool HasVolumes() const;
  Task<> RefreshOne(Host& host);

  const LibvirtConfig& config_;
  Sizes sizes_;
  bool is_known_ = false;
};

}  // namespace nodepool::drivers::libvirt
