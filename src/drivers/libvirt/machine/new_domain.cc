#include "drivers/libvirt/machine/new_domain.h"

namespace nodepool::drivers::libvirt {

std::string DomainName(const MachineId& id, const std::string& hostname) {
  return hostname + "-" + id.digits();
}

NewDomain DescribeDomain(const MachineId& id, const LibvirtLabel& label,
                         const driver::cloud::CreateParameters& parameters, const MachineNetwork& network,
                         DomainDisks disks) {
  NewDomain domain;
  domain.name = DomainName(id, parameters.hostname);
  domain.uuid = id.uuid;
  domain.metadata = parameters.metadata;
  domain.metadata["request_id"] = parameters.request_id.str();
  domain.metadata["label"] = label.name.str();
  domain.metadata["image"] = label.diskimage ? label.diskimage->str() : label.cloud_image.value_or("");
  domain.vcpus = label.vcpus;
  domain.memory = label.memory;
  domain.machine = label.machine;
  domain.cpu = label.cpu;
  domain.firmware = label.firmware;
  domain.variables_path = std::move(disks.variables_path);
  domain.kernel = label.kernel;
  domain.root_path = std::move(disks.root_path);
  domain.image = std::move(disks.image);
  domain.disk_bus = label.disk_bus;
  domain.seed_paths = std::move(disks.seed_paths);
  domain.console_path = std::move(disks.console_path);
  domain.mac = MacAddressOf(id);
  domain.network = network;
  for (const std::string& more : label.more_networks) {
    domain.more_interfaces.push_back({MacAddressOf(id, domain.more_interfaces.size() + 1), more});
  }
  domain.has_generation = label.is_started_warm;
  domain.security_filter = label.security_filter;
  return domain;
}

}  // namespace nodepool::drivers::libvirt
