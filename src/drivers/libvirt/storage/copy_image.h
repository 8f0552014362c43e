#pragma once

#include <string>

#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Ends when the host has the uploaded image, which is copied from another one where it is missing.
// Error(kNotFound): no host that can be used has it.
Task<> EnsureUpload(Site& site, Host& target, std::string image);

}  // namespace nodepool::drivers::libvirt
