#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/hypervisor.h"

// Calls for storage; they block (connection.h). Errors are libvirt's, by FaultOf.

namespace nodepool::drivers::libvirt::calls {

PoolSpace ReadSpace(const Connection& connection);
// After the pool was read anew, as far as that is possible now.
std::vector<VolumeInfo> ListVolumes(const Connection& connection);
VolumeInfo ReadVolume(const Connection& connection, const std::string& name);
std::string CreateVolume(const Connection& connection, const NewVolume& volume);
void WriteVolume(const Connection& connection, const std::string& name, const std::string& bytes);
std::string ReadVolumeStart(const Connection& connection, const std::string& name, std::uint64_t most);
std::string ReadVolumeEnd(const Connection& connection, const std::string& name, std::uint64_t most);
void DeleteVolume(const Connection& connection, const std::string& name);

// Set by the loop when a transfer on a thread is to end.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// Sends the bytes of a volume of one host, not its holes, into the volume of the same name of another one.
// Blocks (connection.h) until the end, or soon after `stop` was set: Error(kCancelled).
void CopyVolume(const Connection& from, const Connection& to, const std::string& name, const StopFlag& stop);

}  // namespace nodepool::drivers::libvirt::calls
