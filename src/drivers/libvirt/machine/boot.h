#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/machine/machines.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/placement/site.h"
#include "drivers/libvirt/storage/boot_image.h"
#include "drivers/libvirt/xml/xml.h"

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

// What the label's machines are on a host of this architecture, which is named as the kernel does. kInvalid:
// it has nothing that the label needs.
Platform PlatformFor(const LibvirtLabel& label, const std::string& architecture);

// The machine as its label wants it, on `network`; what its host decides (platform, KVM, a forwarded port) is
// left as it is by default.
NewDomain DescribeDomain(const MachineId& id, const LibvirtLabel& label,
                         const driver::cloud::CreateParameters& parameters, const MachineNetwork& network,
                         DomainDisks disks);

// The machine with these disks, as its label and its host want it.
NewDomain DescribeOnHost(const Creation& creation, DomainDisks disks);

// Starts the machine, and from then on has its host note whether it ends. Returns the port of the host that
// is forwarded to it; none: it has an address of its own.
Task<std::optional<int>> Boot(Creation& creation, DomainDisks disks);

// Makes the volumes of a machine: a clone of its image, its seed disks, its console log (driver-libvirt.md
// 6). What a failure leaves is removed by DeleteMachine.
Task<DomainDisks> MakeDisks(Creation& creation);

// Makes one of them; returns its path.
Task<std::string> MakeVolume(Creation& creation, NewVolume volume);
Task<std::string> MakeConsole(Creation& creation);

// The public keys that the machine gets.
std::vector<std::string> KeysFor(const Creation& creation);

// Boots the template that the machine may be started from, and saves its memory: afterwards its volumes are
// there, and it does not run. It is complete, or nothing of it is left.
Task<> MakeTemplate(Creation& machine, const MachineId& id);

// Of a template that runs, i.e. is being made: seconds since 1970. 0: not a template.
std::int64_t MakingSince(const DomainInfo& domain);

// A template that has run for so long is what a process has left.
inline constexpr std::chrono::minutes kMostOfMaking{20};

// The template from whose saved memory such a machine may be started on its host. Its UUID is made of
// everything that the memory depends on: what the label says, the image, and how the host runs machines. So
// every process finds the same one, and a change of any of these leads to another one.
MachineId TemplateFor(const Creation& creation, const BootImage& image);

// Whether the volume belongs to a template.
bool IsOfTemplate(const MachineVolume& volume);

// Deletes the templates on the image in this volume from which no machine runs.
Task<> DeleteTemplatesOn(Host& host, std::string image);

// Deletes the provider's templates that were used last a day ago or before, and what an interrupted making
// has left. One that machines run from stays. `volumes` and `domains` are all that the host has.
Task<> DeleteUnusedTemplates(WallTime now, const std::string& provider, Host& host,
                             const std::vector<VolumeInfo>& volumes, const std::vector<DomainInfo>& domains);

}  // namespace nodepool::drivers::libvirt
