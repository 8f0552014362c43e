#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "async/blocking_pool.h"
#include "async/task.h"

namespace nodepool::driver::cloud {

// The file of a build, read in any order. Its functions block; they may be called from several threads.
class ImageFile {
 public:
  // Error(kFail): it cannot be read, or is empty.
  explicit ImageFile(const std::string& path);
  ~ImageFile();
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;

  // At the time when it was opened.
  std::uint64_t size() const { return size_; }

  // Where data begin at `place` or after; size() where only a hole follows.
  std::uint64_t DataFrom(std::uint64_t place) const;
  // `length` bytes from `place`; fewer where the file ends. Error(kFail): it cannot be read, or has become
  // shorter.
  std::string Read(std::uint64_t place, std::size_t length) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

// Opens it on a thread of the pool. Errors: those of ImageFile.
Task<std::shared_ptr<const ImageFile>> OpenImageFile(BlockingPool& pool, std::string path);

// Such as a hole in a file reads; also if there are none.
bool IsAllZeros(const std::string& bytes);

}  // namespace nodepool::driver::cloud
