#include "driver/cloud/images/image_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace nodepool::driver::cloud {

namespace {

Error ReadFault(const std::string& path, const char* why) {
  return Error(Verdict::kFail, fmt::format("{} cannot be read: {}", path, why));
}

}  // namespace

ImageFile::ImageFile(const std::string& path) : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat facts {};
  if (file_ < 0) throw ReadFault(path, std::strerror(errno));
  bool is_known = fstat(file_, &facts) == 0;
  if (is_known && facts.st_size > 0) {
    size_ = static_cast<std::uint64_t>(facts.st_size);
    return;
  }
  Error fault = ReadFault(path, is_known ? "it is empty" : std::strerror(errno));
  close(file_);
  throw fault;
}

ImageFile::~ImageFile() { close(file_); }

std::uint64_t ImageFile::DataFrom(std::uint64_t place) const {
  if (place >= size_) return size_;
  off_t data = lseek(file_, static_cast<off_t>(place), SEEK_DATA);
  if (data >= 0) return std::min(static_cast<std::uint64_t>(data), size_);
  // File systems without holes know no such question.
  return errno == ENXIO ? size_ : place;
}

std::string ImageFile::Read(std::uint64_t place, std::size_t length) const {
  length = static_cast<std::size_t>(std::min<std::uint64_t>(length, size_ - std::min(place, size_)));
  std::string bytes(length, '\0');
  for (std::size_t done = 0; done < length;) {
    ssize_t count = pread(file_, bytes.data() + done, length - done, static_cast<off_t>(place + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw ReadFault(path_, count < 0 ? std::strerror(errno) : "it has become shorter");
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

Task<std::shared_ptr<const ImageFile>> OpenImageFile(BlockingPool& pool, std::string path) {
  auto open = [path = std::move(path)] { return std::make_shared<const ImageFile>(path); };
  std::shared_ptr<const ImageFile> file = co_await OnBlockingPool(pool, std::move(open));
  co_return file;
}

bool IsAllZeros(const std::string& bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace nodepool::driver::cloud
