#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace nodepool::drivers::libvirt {

// The text with every byte that could be taken for a separator, or that a file name should not have, as %XX.
std::string Escaped(std::string_view text);

// nullopt: a % is not followed by two lower-case hex digits.
std::optional<std::string> Unescaped(std::string_view text);

// A machine of the provider: its host's name and the domain's UUID, which the driver chooses. As external id
// the text "<host>/<UUID>".
struct MachineId {
  std::string host;
  std::string uuid;  // 36 characters, lower case

  std::string ToText() const { return host + "/" + uuid; }
  // What names of its domain and volumes have of the UUID.
  std::string digits() const { return uuid.substr(0, 8); }
  bool operator==(const MachineId&) const = default;
};

// nullopt: the text is not an external id of this driver.
std::optional<MachineId> ParseMachineId(std::string_view text);

// The address of a network interface of the machine, counted from 0 (the one by which it is reached), made of
// the UUID: another one for each machine, so that the lease of a former machine is never taken for this
// one's.
std::string MacAddressOf(const MachineId& id, std::size_t interface = 0);

// What a volume of a machine is for; the last field of its name.
inline constexpr const char* kRootPart = "root";
inline constexpr const char* kConsolePart = "console";
inline constexpr const char* kNoCloudPart = "nocloud";
inline constexpr const char* kConfigDrivePart = "config-drive";
inline constexpr const char* kMemoryPart = "memory";
inline constexpr const char* kVariablesPart = "variables";

// In place of a node's id in the names of what machines with saved memory consist of (warm/).
inline constexpr const char* kWarmStart = "warm-start";

// A volume that belongs to a machine. Volumes have no metadata, so their names say whose they are
// (driver-libvirt.md 5.2).
struct MachineVolume {
  std::string provider;
  std::string node;     // its id
  std::string machine;  // the first 8 digits of the machine's UUID
  std::string part;     // kRootPart ..., or "console.0" and so on, which libvirt's log daemon makes

  bool operator==(const MachineVolume&) const = default;
};

std::string NameOf(const MachineVolume& volume);
// nullopt: not the name of such a volume.
std::optional<MachineVolume> ParseMachineVolume(std::string_view name);
// As metadata that says whose the volume is (driver/cloud/metadata.h).
std::map<std::string, std::string> MetadataOf(const MachineVolume& volume);

// A volume that the builder has uploaded.
struct ImageVolume {
  std::string provider;
  std::string build;
  std::string upload;
  std::string format;

  bool operator==(const ImageVolume&) const = default;
};

std::string NameOf(const ImageVolume& volume);
std::optional<ImageVolume> ParseImageVolume(std::string_view name);

// An image that the driver has fetched.
struct FetchedVolume {
  std::string provider;
  std::string checksum;  // its first 16 digits are in the name
  std::string format;
};

std::string NameOf(const FetchedVolume& volume);
// Its checksum is what the name has of it.
std::optional<FetchedVolume> ParseFetchedVolume(std::string_view name);

// The name of an empty volume that exists while the image is written, since volumes cannot be renamed: an
// image beside which there is one is not complete.
std::string MarkOf(std::string_view image);
// The name without such a mark's end.
std::string_view WithoutMark(std::string_view name);
// The image of such a mark; nullopt: the name is not one's.
std::optional<ImageVolume> ParseMark(std::string_view name);
std::map<std::string, std::string> MetadataOf(const ImageVolume& volume);

}  // namespace nodepool::drivers::libvirt
