#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/libvirt/config/libvirt_config.h"

namespace nodepool::drivers::libvirt {

// Adds <name>text</name>.
inline pugi::xml_node Add(pugi::xml_node parent, const char* name, const std::string& text) {
  pugi::xml_node node = parent.append_child(name);
  node.text().set(text.c_str());
  return node;
}

// Sets attributes in the order given; returns the node.
inline pugi::xml_node With(pugi::xml_node node,
                           std::initializer_list<std::pair<const char*, std::string>> attributes) {
  for (const auto& [name, value] : attributes) node.append_attribute(name).set_value(value.c_str());
  return node;
}

// The document as libvirt takes it.
std::string TextOf(const pugi::xml_document& document);

// Parses what a host has answered. Error(kFail): it is not XML; `what` names it, e.g. "a domain".
void Parse(std::string_view text, const char* what, pugi::xml_document& document);

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

// A port of the host at which the machine is reached.
struct ForwardedPort {
  std::string bind_address;  // IPv4; "": any of the host's
  int port = 0;
  int guest_port = 22;
};

// A network interface in a libvirt network.
struct NetworkInterface {
  std::string mac;
  std::string network;
};

// The kind of computer that a machine is.
struct Platform {
  std::string architecture = "x86_64";
  std::string machine = "q35";  // QEMU's name
  Firmware firmware = Firmware::kBios;
  bool is_x86() const { return architecture == "x86_64" || architecture == "i686"; }
};

// A machine to be started, as plain values; driver-libvirt.md 7 says what each is for.
struct NewDomain {
  std::string name;
  std::string uuid;
  std::map<std::string, std::string> metadata;
  Platform platform;
  bool uses_kvm = false;
  int vcpus = 1;
  int memory = 0;                      // MiB
  std::optional<std::string> cpu;      // none: the host's with KVM, everything that QEMU can do without
  std::string variables_path;          // a file that libvirt makes; empty: the firmware has none
  std::optional<DirectKernel> kernel;  // none: what the disk boots
  std::string root_path;               // a qcow2 volume
  DiskFile image;                      // its backing file
  std::string disk_bus = "virtio";
  std::vector<std::string> seed_paths;  // raw, read-only
  std::string console_path;
  std::string mac;
  MachineNetwork network;
  std::vector<NetworkInterface> more_interfaces;
  std::optional<ForwardedPort> forwarded;  // set where the network is QEMU's own
  std::optional<std::string> security_filter;
  bool has_generation = false;  // a device that tells the guest that it goes on from saved memory
};

std::string DomainXml(const NewDomain& domain);

// Adds what Nodepool notes about a machine to <domain>.
void AddMetadata(pugi::xml_node root, const std::map<std::string, std::string>& metadata);

// A domain as its host describes it; not only ours.
struct DomainInfo {
  std::string uuid;
  std::string name;
  std::map<std::string, std::string> metadata;  // empty: not made by Nodepool
  int vcpus = 0;
  double memory = 0;  // MiB
};

// Error(kFail): the text does not describe a domain.
DomainInfo ParseDomain(std::string_view xml);

// The MAC addresses of the domain's interfaces.
std::vector<std::string> MacAddressesIn(std::string_view domain_xml);

// A file that libvirt has saved a machine's memory to begins with a header and the machine's description, for
// which it keeps a fixed room; QEMU's own data follow. libvirt does not restore a machine under another name
// or UUID, so the description is replaced in the file (driver-libvirt.md 6.2).

// The description ends within so many bytes of the file's start.
inline constexpr std::size_t kMostOfSavedMemory = std::size_t{1} << 20;

// The description in the file that starts so. nullopt: the file is not complete. Error(kFail): it is not one
// of libvirt's, or of a version that is not known.
std::optional<std::string> DescriptionIn(std::string_view start);

// The first bytes of the file with another description, to be written over the old ones. Error(kFail): it is
// longer than the room for it.
std::string WithDescription(std::string_view start, const std::string& description);

// The description of a machine that goes on from the saved memory of another one: what the guest's kernel
// knows of its devices stays; name, UUID, metadata, first disk, console log and address are those of `clone`.
// Without blanks: not longer than `saved`. Error(kFail): `saved` does not describe such a machine.
std::string CloneXml(std::string_view saved, const NewDomain& clone);

}  // namespace nodepool::drivers::libvirt
