#include "net/http/upload_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace nodepool::net {

namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

}  // namespace

struct UploadReader::File {
  File(int descriptor, std::string name) : fd(descriptor), path(std::move(name)) {}
  ~File() { ::close(fd); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string Read(std::uint64_t at, std::size_t size) const {
    std::string block(size, '\0');
    std::size_t done = 0;
    while (done < size) {
      ssize_t got = ::pread(fd, block.data() + done, size - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(errno)));
      if (got == 0) throw Error(Verdict::kFail, path + ": the file became shorter while it was uploaded");
      done += static_cast<std::size_t>(got);
    }
    return block;
  }

  int fd;
  std::string path;
};

UploadReader::UploadReader(BlockingPool& pool, std::shared_ptr<File> file, std::uint64_t size)
    : pool_(pool), file_(std::move(file)), size_(size) {}

Task<std::unique_ptr<UploadReader>> UploadReader::Open(BlockingPool& pool, std::string path) {
  std::uint64_t size = 0;
  auto open = [path, &size]() {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (fd < 0) throw Error(Verdict::kInvalid, fmt::format("{}: {}", path, std::strerror(errno)));
    auto file = std::make_shared<File>(fd, path);
    if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
      throw Error(Verdict::kInvalid, path + " is no regular file");
    }
    size = static_cast<std::uint64_t>(about.st_size);
    return file;
  };
  std::shared_ptr<File> file = co_await OnBlockingPool(pool, std::move(open));
  co_return std::unique_ptr<UploadReader>(new UploadReader(pool, std::move(file), size));
}

Task<> UploadReader::ReadBlock() {
  std::uint64_t at = read_;
  auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, size_ - read_));
  auto read = [file = file_, at, size]() { return file->Read(at, size); };
  std::string block = co_await OnBlockingPool(pool_, std::move(read));
  read_ += size;
  blocks_.push_back(std::move(block));
}

std::size_t UploadReader::Take(char* to, std::size_t limit) {
  if (blocks_.empty()) return 0;
  const std::string& block = blocks_.front();
  std::size_t size = std::min(limit, block.size() - offset_);
  std::memcpy(to, block.data() + offset_, size);
  offset_ += size;
  taken_ += size;
  if (offset_ == block.size()) {
    blocks_.pop_front();
    offset_ = 0;
  }
  return size;
}

}  // namespace nodepool::net
