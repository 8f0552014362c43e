#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"
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
class SparseFile {
 public:
  // Error(kFail): it cannot be read.
  explicit SparseFile(const std::string& path);
  ~SparseFile();
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  std::uint64_t size() const { return size_; }

  // What begins at the current place; length 0 at the end of the file.
  struct Section {
    bool is_data = false;
    std::uint64_t length = 0;
  };
  Section Next() const;
  // Up to `most` bytes from the current place; 0 at the end. Negative: the file cannot be read.
  std::int64_t Read(char* buffer, std::size_t most);
  // Over a hole.
  void Skip(std::uint64_t length);

  // Of everything that was read or skipped, in hex. To be called once.
  std::string Sha256() { return digest_.Hex(); }

 private:
  int file_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t place_ = 0;
  Digest digest_{"sha256"};
};

}  // namespace nodepool::drivers::libvirt
