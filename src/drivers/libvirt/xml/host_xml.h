#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drivers/libvirt/config/host_config.h"

namespace nodepool::drivers::libvirt {

inline constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;

// A file on a host and its format, which is always named: a format is never guessed from contents.
struct DiskFile {
  std::string path;
  std::string format;  // qcow2 or raw

  bool operator==(const DiskFile&) const = default;
};

// A volume to be made.
struct NewVolume {
  std::string name;
  std::string format = "raw";
  std::uint64_t capacity = 0;       // bytes
  std::optional<DiskFile> backing;  // of a qcow2 volume
  bool is_secret = false;           // mode 0600
};

std::string VolumeXml(const NewVolume& volume);

// A volume of a storage pool as its host describes it.
struct VolumeInfo {
  std::string name;
  std::string path;
  std::string format;            // "" where the host does not say
  std::uint64_t capacity = 0;    // virtual size, bytes
  std::uint64_t allocation = 0;  // bytes on the disk
  std::string backing_path;      // "": none
  std::int64_t modified = 0;     // seconds since 1970; 0 where the host does not say
  std::uint64_t length = 0;      // bytes of the file; 0: the host does not say
};

// Error(kFail): the text does not describe a volume.
VolumeInfo ParseVolume(std::string_view xml);

// A storage pool of type `dir` in a folder of the host.
std::string PoolXml(const std::string& name, const std::string& path);

// What a storage pool on a network is on, by the pool's description: the same for all hosts that have it.
// Empty: it is on a disk of its host. Error(kFail): the text is not XML.
std::string SharedStorageIn(std::string_view pool_xml);

// A network behind NAT on a bridge that libvirt names. The host has the subnet's first address; its DHCP
// server hands out the others for ten minutes.
std::string NetworkXml(const NewNetwork& network);

// How many IPv4 addresses the DHCP server of a network may hand out, by the network's description; 0: it has
// no such server. Error(kFail): the text is not XML.
std::uint64_t LeaseRangeIn(std::string_view network_xml);

}  // namespace nodepool::drivers::libvirt
