#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/sparse_file.h"

struct z_stream_s;

namespace nodepool {

// A gzipped GNU tar archive with one file in it, made piece by piece, without a copy on disk. Long runs of
// zeros, of which images are full, are compressed once for all.
class TarGzStream : public ByteSource {
 public:
  // `length` bytes of the file from `place`; fewer where it ends: the rest of its member is zeros.
  using Reader = std::function<std::string(std::uint64_t place, std::size_t length)>;

  // `name`, of at most 99 bytes, and `size` are those of the archive's member. Error(kFail): zlib refuses.
  TarGzStream(std::string name, std::uint64_t size, Reader read);
  ~TarGzStream() override;

  std::string Read(std::size_t size) override;
  bool is_at_end() const override { return is_at_end_; }
  std::uint64_t place() const override { return place_; }

 private:
  // More of the archive before its compression.
  std::string NextPlain();
  // Compresses more of it, to the end of `compressed_`.
  void Advance();

  std::string name_;
  std::uint64_t size_;
  Reader read_;
  std::uint64_t place_ = 0;  // in the member
  bool has_header_ = false;
  bool has_trailer_ = false;
  bool is_at_end_ = false;
  std::string compressed_;  // and not read yet
  std::uint32_t checksum_ = 0;
  std::uint64_t plain_size_ = 0;
  bool is_flushed_ = true;  // what comes refers to nothing before it
  std::unique_ptr<z_stream_s> zlib_;
};

// The header of an archive's member.
std::string TarHeader(const std::string& name, std::uint64_t size);

}  // namespace nodepool
