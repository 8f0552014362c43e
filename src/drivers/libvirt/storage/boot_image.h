#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "driver/cloud/adapter.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt {

// What a machine's disk is backed by.
struct BootImage {
  DiskFile file;
  std::uint64_t capacity = 0;  // virtual size, bytes; 0: not known
  std::int64_t modified = 0;   // seconds since 1970; 0: not known
};

// The virtual size of a volume used as `format`, bytes. Of a raw one its length: the capacity that libvirt
// reports may be from what looks like a header in it.
std::uint64_t SizeOfDisk(const VolumeInfo& volume, const std::string& format);

// The volume of the label's image on every host; nullopt: the image is a file.
std::optional<std::string> VolumeOf(const LibvirtConfig& config, const driver::LabelConfig& label,
                                    const std::optional<std::string>& image_external_id);

// The label's image as the host has it. kNotFound: it does not have it. kInvalid: a machine must not be made
// from it, since it has a backing file of its own or an unknown format.
Task<BootImage> FindBootImage(Hypervisor& host, const LibvirtConfig& config,
                              const driver::cloud::CreateParameters& parameters);

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
