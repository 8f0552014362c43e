#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/keys.h"

namespace nodepool::drivers::libvirt {

// What a machine learns from its seed disks. Everybody in the machine can read it.
struct SeedContent {
  std::string uuid;
  std::string hostname;
  std::string mac;
  std::vector<std::string> authorized_keys;
  std::optional<std::string> userdata;  // verbatim; none: a #cloud-config with the keys
  std::optional<SshKey> host_key;       // none: the machine makes its own
};

// A disk's label and files, by path.
struct Seed {
  std::string label;
  std::map<std::string, std::string> files;
};

Seed MakeSeed(SeedFormat format, const SeedContent& content);

// The last field of the name of a volume with such a seed.
const char* PartOf(SeedFormat format);

// The bytes of an ISO 9660 image (with Rock Ridge and Joliet names) that contains `files`, by path, readable
// by everybody. The label is kept as it is, also in lower case.
std::string IsoImage(const std::string& label, const std::map<std::string, std::string>& files);

}  // namespace nodepool::drivers::libvirt
