#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/names/machine_id.h"
#include "drivers/libvirt/xml/domain_xml.h"

namespace nodepool::drivers::libvirt {

// Files on the host that a machine is started with.
struct DomainDisks {
  std::string root_path;
  DiskFile image;
  std::vector<std::string> seed_paths;
  std::string console_path;
  std::string variables_path;  // empty: the firmware has no variables
};

// With a part of the UUID: what is left of an earlier attempt for the same node has another name.
std::string DomainName(const MachineId& id, const std::string& hostname);

// The machine as its label wants it, on `network`; what its host decides (KVM, a forwarded port) is left as
// it is by default.
NewDomain DescribeDomain(const MachineId& id, const LibvirtLabel& label,
                         const driver::cloud::CreateParameters& parameters, const MachineNetwork& network,
                         DomainDisks disks);

}  // namespace nodepool::drivers::libvirt
