#pragma once

#include <string>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/stop_flag.h"

namespace nodepool::drivers::libvirt::calls {

// Sends the bytes of a volume of one host, not its holes, into the volume of the same name of another one.
// Blocks (connection.h) until the end, or soon after `stop` was set: Error(kCancelled).
void CopyVolume(const Connection& from, const Connection& to, const std::string& name, const StopFlag& stop);

}  // namespace nodepool::drivers::libvirt::calls
