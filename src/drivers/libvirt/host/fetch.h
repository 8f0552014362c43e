#pragma once

#include <cstdint>
#include <string>

#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/hypervisor.h"
#include "drivers/libvirt/host/volume_calls.h"

namespace nodepool::drivers::libvirt::calls {

// Names the work in messages: the URL without user, password and query.
std::string Fetching(const ImageOrigin& origin);

// Error(kQuota): an image of `length` bytes would leave less than `reserve` of the space in the storage pool.
void CheckRoom(std::uint64_t length, const PoolSpace& space, std::uint64_t reserve);

// Makes a volume of what is at the origin's URL, which goes from the network to the host without a file
// between. Blocks (connection.h) until the end, or soon after `stop` was set: Error(kCancelled).
// Error(kRetry): it cannot be fetched now. Error(kQuota): it is too long for the storage pool, which keeps
// `reserve` bytes free. Error(kInvalid): its checksum is another one. A failure may leave the volume.
void FetchVolume(const Connection& connection, const std::string& name, const ImageOrigin& origin,
                 std::uint64_t reserve, const StopFlag& stop);

}  // namespace nodepool::drivers::libvirt::calls
