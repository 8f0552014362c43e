#include "driver/cloud/images/image_file.h"

#include <cstring>

#include "base/error.h"

namespace nodepool::driver::cloud {

Task<std::shared_ptr<const SparseFile>> OpenImageFile(BlockingPool& pool, std::string path) {
  auto open = [path = std::move(path)] {
    auto file = std::make_shared<const SparseFile>(path);
    if (file->size() == 0) throw Error(Verdict::kInvalid, path + " is empty");
    return file;
  };
  std::shared_ptr<const SparseFile> file = co_await OnBlockingPool(pool, std::move(open));
  co_return file;
}

bool IsAllZeros(const std::string& bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace nodepool::driver::cloud
