#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/sparse_file.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt::calls {

// Calls for storage; they block (connection.h). Errors are libvirt's, by FaultOf.

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

// Sends the file into the volume, which is as long as the file: its data, not its holes. Returns the SHA-256
// of the whole file in hex. Blocks (connection.h) until the end, or soon after `stop` was set:
// Error(kCancelled).
std::string UploadFile(const Connection& connection, const std::string& volume, const std::string& path,
                       const StopFlag& stop);

}  // namespace nodepool::drivers::libvirt::calls

namespace nodepool::drivers::libvirt {

// A file read from its beginning to its end, data and holes apart, and hashed on the way.
class HashedFile {
 public:
  // Error(kInvalid): it cannot be opened.
  explicit HashedFile(const std::string& path) : file_(path) {}

  std::uint64_t size() const { return file_.size(); }

  // What begins at the current place; length 0 at the end of the file.
  SparseFile::Stretch Next() const { return file_.At(place_); }
  // Up to `most` bytes from the current place; 0 at the end. Error(kFail): the file cannot be read.
  std::size_t Read(char* buffer, std::size_t most);
  // Over a hole.
  void Skip(std::uint64_t length);

  // Of everything that was read or skipped, in hex. To be called once.
  std::string Sha256() { return digest_.Hex(); }

 private:
  SparseFile file_;
  std::uint64_t place_ = 0;
  Digest digest_{"sha256"};
};

}  // namespace nodepool::drivers::libvirt
