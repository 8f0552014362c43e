#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Chooses a host, makes the machine's volumes there, starts it and waits for its address (driver-libvirt.md
// 6). Its id is stored before anything is made; what a failure leaves is removed by DeleteMachine.
Task<driver::cloud::Instance> CreateMachine(Site& site, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

}  // namespace nodepool::drivers::libvirt
