#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "async/blocking_pool.h"

namespace nodepool::net {

// A file read in blocks on the blocking pool, some of them ahead of who takes them:
// memory stays the same however large the file is.
class UploadReader {
 public:
  // Opens the file, on the pool. Error(kInvalid) when it cannot be read.
  static Task<std::unique_ptr<UploadReader>> Open(BlockingPool& pool, std::string path);

  std::uint64_t size() const { return size_; }

  // Whether another block is to be read: there is one, and few are waiting.
  bool wants_block() const { return read_ < size_ && blocks_.size() < kAhead; }
  // Reads it. Error(kFail) when the file became shorter or cannot be read.
  Task<> ReadBlock();

  // At most `limit` bytes of what was read; 0: nothing is there right now, or ever.
  std::size_t Take(char* to, std::size_t limit);
  std::uint64_t taken() const { return taken_; }
  bool is_at_end() const { return taken_ == size_; }

 private:
  static constexpr std::size_t kAhead = 3;
  struct File;

  UploadReader(BlockingPool& pool, std::shared_ptr<File> file, std::uint64_t size);

  BlockingPool& pool_;
  std::shared_ptr<File> file_;
  std::uint64_t size_;
  std::uint64_t read_ = 0;
  std::uint64_t taken_ = 0;
  std::deque<std::string> blocks_;
  std::size_t offset_ = 0;  // in the first block
};

}  // namespace nodepool::net
