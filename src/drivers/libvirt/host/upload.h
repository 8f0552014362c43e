#pragma once

#include <string>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/stop_flag.h"

namespace nodepool::drivers::libvirt::calls {

// Sends the file into the volume, which is as long as the file: its data, not its holes. Returns the SHA-256
// of the whole file in hex. Blocks (connection.h) until the end, or soon after `stop` was set:
// Error(kCancelled).
std::string UploadFile(const Connection& connection, const std::string& volume, const std::string& path,
                       const StopFlag& stop);

}  // namespace nodepool::drivers::libvirt::calls
