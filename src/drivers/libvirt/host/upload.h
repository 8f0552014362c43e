#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"
#include "base/sparse_file.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/volume_calls.h"

namespace nodepool::drivers::libvirt::calls {

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
