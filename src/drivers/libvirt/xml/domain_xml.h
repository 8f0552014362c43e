#pragma once

#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/libvirt/config/host_config.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/xml/host_xml.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
