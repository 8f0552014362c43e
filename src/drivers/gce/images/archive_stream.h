#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/digest.h"
#include "driver/cloud/images/image_file.h"

namespace nodepool::drivers::gce {

// A file as Google imports it: a gzipped GNU tar archive with one member, disk.raw, a whole number of GiB
// long (driver-gce.md 13). Made piece by piece, without a copy on disk. Its functions block.
class ArchiveStream {
 public:
  explicit ArchiveStream(std::shared_ptr<const driver::cloud::ImageFile> file);
  ~ArchiveStream();
  ArchiveStream(const ArchiveStream&) = delete;
  ArchiveStream& operator=(const ArchiveStream&) = delete;

  // The next bytes, at most `size`; fewer, or none, although it is not at its end: reads a bounded part of
  // the file. Error(kFail): the file cannot be read.
  std::string Read(std::size_t size);
  bool is_at_end() const { return is_at_end_; }
  // How much of the file has been read.
  std::uint64_t place() const { return place_; }
  // The MD5 of all that Read() has returned, in base64. To be called once, at the end.
  std::string Md5();

 private:
  // More of the archive before its compression; empty: that was all.
  std::string NextPlain();

  std::shared_ptr<const driver::cloud::ImageFile> file_;
  std::uint64_t disk_size_ = 0;  // of disk.raw
  std::uint64_t place_ = 0;      // in disk.raw
  bool has_header_ = false;
  bool has_trailer_ = false;
  bool is_at_end_ = false;
  std::string plain_;  // what the compression still refers to
  z_stream zlib_{};
  Digest md5_{"md5"};
};

// The header of the archive's member for a disk of that size.
std::string TarHeader(std::uint64_t size);

}  // namespace nodepool::drivers::gce
