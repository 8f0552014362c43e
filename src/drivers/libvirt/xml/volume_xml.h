#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace nodepool::drivers::libvirt
