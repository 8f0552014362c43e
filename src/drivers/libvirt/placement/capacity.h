#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "driver/quota_information.h"
#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Metadata of a domain: the virtual size of its disk in GiB.
inline constexpr const char* kDiskKey = "nodepool_disk";

// What a machine of the label takes. Error(kRetry): the size of its image is not known yet.
Need NeedOf(const LibvirtConfig& config, const ImageSizes& sizes, const LibvirtLabel& label);
// What a domain takes. The disk of a foreign one is not known.
Need NeedOf(const DomainInfo& domain);
driver::QuotaInformation ToQuota(const Need& need);

// What machines may take of the host together; `capacity` is its storage pool's, in bytes.
Need LimitOf(const HostConfig& config, const HostSize& size, std::uint64_t capacity);

// Each host as placement sees it for a machine of the label. What is chosen goes into the ledger before
// anything else is awaited.
Task<std::vector<HostRoom>> ReadRooms(Site& site, const LibvirtPool& pool, const LibvirtLabel& label,
                                      std::optional<std::string> image_external_id);

// The sum of the limits of all usable hosts; storage that several share counts once. Throws the first host's
// fault where none is usable.
Task<Need> SumOfLimits(const Hosts& all);

// Whether the machines of the label have to be on the host of the request's other nodes.
SameHost SameHostFor(const LibvirtConfig& config, const LibvirtLabel& label);

// The host for a machine that takes `need` (driver-libvirt.md 13.3). The caller enters it in the ledger
// before it awaits anything else. kQuota: there is no room now; the label's next call waits for more room
// first, half a minute at most. kInvalid: no host is large enough.
Task<Host*> ChooseHostFor(Site& site, const driver::cloud::CreateParameters& parameters, Need need);

}  // namespace nodepool::drivers::libvirt
