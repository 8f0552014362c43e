#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Whether the machines of the label have to be on the host of the request's other nodes.
SameHost SameHostFor(const Site& site, const LibvirtLabel& label);

// The host for a machine that takes `need` (driver-libvirt.md 13.3). The caller enters it in the ledger
// before it awaits anything else. kQuota: there is no room now; the label's next call waits for more room
// first, half a minute at most. kInvalid: no host is large enough.
Task<Host*> ChooseHostFor(Site& site, const driver::cloud::CreateParameters& parameters, Need need);

}  // namespace nodepool::drivers::libvirt
