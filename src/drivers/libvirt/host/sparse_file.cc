#include "drivers/libvirt/host/sparse_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

namespace {

Error FileFault(const std::string& path) {
  return Error(Verdict::kFail, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
}

}  // namespace

SparseFile::SparseFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat facts {};
  if (file_ < 0) throw FileFault(path);
  if (fstat(file_, &facts) < 0) {
    Error fault = FileFault(path);
    close(file_);
    throw fault;
  }
  size_ = static_cast<std::uint64_t>(facts.st_size);
}

SparseFile::~SparseFile() { close(file_); }

SparseFile::Section SparseFile::Next() const {
  if (place_ >= size_) return {};
  auto here = static_cast<off_t>(place_);
  off_t data = lseek(file_, here, SEEK_DATA);
  // A hole to the end of the file.
  if (data < 0) return {false, size_ - place_};
  if (data > here) return {false, static_cast<std::uint64_t>(data) - place_};
  off_t hole = lseek(file_, here, SEEK_HOLE);
  std::uint64_t end = hole < 0 ? size_ : static_cast<std::uint64_t>(hole);
  return {true, end - place_};
}

std::int64_t SparseFile::Read(char* buffer, std::size_t most) {
  ssize_t count = pread(file_, buffer, most, static_cast<off_t>(place_));
  if (count <= 0) return count;
  digest_.Add(std::string_view(buffer, static_cast<std::size_t>(count)));
  place_ += static_cast<std::uint64_t>(count);
  return count;
}

void SparseFile::Skip(std::uint64_t length) {
  static constexpr std::array<char, 65536> kZeros{};
  place_ += length;
  for (std::uint64_t left = length; left > 0;) {
    std::uint64_t part = std::min<std::uint64_t>(left, kZeros.size());
    digest_.Add(std::string_view(kZeros.data(), static_cast<std::size_t>(part)));
    left -= part;
  }
}

}  // namespace nodepool::drivers::libvirt
