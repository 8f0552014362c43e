#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nodepool {

// Bytes that are made while they are read, in order. Its functions may block.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The next bytes, at most `size`; fewer, or none, although it is not at its end: one call does a bounded
  // part of the work. Errors: why they cannot be made.
  virtual std::string Read(std::size_t size) = 0;
  virtual bool is_at_end() const = 0;
  // How much of what they are made of has been read.
  virtual std::uint64_t place() const = 0;
};

// A regular file that is read in any order, such as the image of a build. Most of such a file may be holes,
// which cost neither reading nor memory of the system's cache: ask before you read. Its functions block; they
// may be called from several threads.
class SparseFile {
 public:
  // What follows a place without change.
  struct Stretch {
    bool is_data = true;  // a hole reads as zeros
    std::uint64_t length = 0;
  };

  // Error(kInvalid): it cannot be opened, or is not a regular file.
  explicit SparseFile(const std::string& path);
  ~SparseFile();
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  const std::string& path() const { return path_; }
  // Bytes, when it was opened.
  std::uint64_t size() const { return size_; }

  // Of a file system without holes all are data. Length 0: the end.
  Stretch At(std::uint64_t place) const;
  // Where data begin at `place` or after; size() where only a hole follows.
  std::uint64_t DataFrom(std::uint64_t place) const;
  // `length` bytes from `place`, which lie in the file. Error(kFail): they cannot be read, or the file has
  // become shorter.
  void Read(std::uint64_t place, char* to, std::size_t length) const;
  // The same; fewer bytes where the file ends.
  std::string Read(std::uint64_t place, std::size_t length) const;

 private:
  std::string path_;
  int file_;
  std::uint64_t size_ = 0;
};

}  // namespace nodepool
