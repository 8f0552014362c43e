#pragma once

#include <libvirt/virterror.h>

#include <string>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

// libvirt's answer as our error, with libvirt's own words (driver-libvirt.md 17). `what` says what was tried.
Error FaultOf(const std::string& what, int code, const std::string& message);

// Of the calling thread's last call; to be read at once after it.
Error LastFault(const std::string& what);
int LastCode();

}  // namespace nodepool::drivers::libvirt
