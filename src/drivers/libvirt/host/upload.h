#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "drivers/libvirt/host/connection.h"

namespace nodepool::drivers::libvirt::calls {

// Set by the loop when an upload is to end.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// Sends the file into the volume, which is as long as the file: its data, not its holes. Returns the SHA-256
// of the whole file in hex. Blocks (connection.h) until the end, or soon after `stop` was set:
// Error(kCancelled).
std::string UploadFile(const Connection& connection, const std::string& volume, const std::string& path,
                       const StopFlag& stop);

}  // namespace nodepool::drivers::libvirt::calls
