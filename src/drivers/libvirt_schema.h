#pragma once

#include "config/schema/schema.h"

namespace nodepool::drivers {

// A provider's section of driver `libvirt` (driver-libvirt.md 2). Part of every program, unlike the driver: a
// file with such a section can be checked where the driver is not installed.
const config::Schema& LibvirtSchema();

}  // namespace nodepool::drivers
