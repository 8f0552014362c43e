#include "net/http/upload_reader.h"

#include <algorithm>
#include <cstring>

namespace nodepool::net {

namespace {

constexpr std::uint64_t kBlockBytes = 1 << 20;

}  // namespace

UploadReader::UploadReader(BlockingPool& pool, std::shared_ptr<const SparseFile> file)
    : pool_(pool), file_(std::move(file)) {}

Task<std::unique_ptr<UploadReader>> UploadReader::Open(BlockingPool& pool, std::string path) {
  auto open = [path = std::move(path)] { return std::make_shared<const SparseFile>(path); };
  std::shared_ptr<const SparseFile> file = co_await OnBlockingPool(pool, std::move(open));
  co_return std::unique_ptr<UploadReader>(new UploadReader(pool, std::move(file)));
}

UploadReader::Block UploadReader::Read(const SparseFile& file, std::uint64_t place) {
  SparseFile::Stretch next = file.At(place);
  Block block{next.length};
  if (!next.is_data) return block;
  block.length = std::min(next.length, kBlockBytes);
  block.bytes.resize(block.length);
  file.Read(place, block.bytes.data(), block.length);
  return block;
}

Task<> UploadReader::ReadBlock() {
  auto read = [file = file_, place = read_] { return Read(*file, place); };
  Block block = co_await OnBlockingPool(pool_, std::move(read));
  read_ += block.length;
  blocks_.push_back(std::move(block));
}

std::size_t UploadReader::Take(char* to, std::size_t limit) {
  if (blocks_.empty()) return 0;
  const Block& block = blocks_.front();
  std::size_t size = std::min<std::uint64_t>(limit, block.length - offset_);
  if (block.bytes.empty()) {
    std::memset(to, 0, size);
  } else {
    std::memcpy(to, block.bytes.data() + offset_, size);
  }
  offset_ += size;
  taken_ += size;
  if (offset_ == block.length) {
    blocks_.pop_front();
    offset_ = 0;
  }
  return size;
}

}  // namespace nodepool::net
