#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "async/blocking_pool.h"
#include "base/sparse_file.h"

namespace nodepool::net {

// A file read in blocks on the blocking pool, some of them in advance: memory use is the same
// however large the file is. Its holes are not read.
class UploadReader {
 public:
  // Opens the file, on the pool. Error(kInvalid) when it cannot be read.
  static Task<std::unique_ptr<UploadReader>> Open(BlockingPool& pool, std::string path);

  std::uint64_t size() const { return file_->size(); }

  // Whether another block is to be read: the file has one, and few are waiting.
  bool wants_block() const { return read_ < size() && blocks_.size() < kAhead; }
  // Reads the next block. Error(kFail) when the file became shorter or cannot be read.
  Task<> ReadBlock();

  // At most `limit` bytes of those read; 0: none are available now, or the end is reached.
  std::size_t Take(char* to, std::size_t limit);
  std::uint64_t taken() const { return taken_; }
  bool is_at_end() const { return taken_ == size(); }

 private:
  static constexpr std::size_t kAhead = 3;
  struct Block {
    std::uint64_t length = 0;
    std::string bytes = {};  // empty: a hole
  };

  UploadReader(BlockingPool& pool, std::shared_ptr<const SparseFile> file);
  static Block Read(const SparseFile& file, std::uint64_t place);

  BlockingPool& pool_;
  std::shared_ptr<const SparseFile> file_;
  std::uint64_t read_ = 0;
  std::uint64_t taken_ = 0;
  std::deque<Block> blocks_;
  std::uint64_t offset_ = 0;  // in the first block
};

}  // namespace nodepool::net
