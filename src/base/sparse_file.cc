#include "base/sparse_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace nodepool {

SparseFile::SparseFile(const std::string& path)
    : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) throw Error(Verdict::kInvalid, fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat facts = {};
  if (fstat(file_, &facts) == 0 && S_ISREG(facts.st_mode)) {
    size_ = static_cast<std::uint64_t>(facts.st_size);
    return;
  }
  close(file_);
  throw Error(Verdict::kInvalid, path + " is not a regular file");
}

SparseFile::~SparseFile() { close(file_); }

SparseFile::Stretch SparseFile::At(std::uint64_t place) const {
  if (place >= size_) return {};
  auto here = static_cast<off_t>(place);
  off_t data = lseek(file_, here, SEEK_DATA);
  // ENXIO: a hole to the end. A file system without holes does not know the question.
  if (data < 0) return {errno != ENXIO, size_ - place};
  if (data > here) return {false, std::min(static_cast<std::uint64_t>(data), size_) - place};
  off_t hole = lseek(file_, here, SEEK_HOLE);
  std::uint64_t end = hole <= here ? size_ : std::min(static_cast<std::uint64_t>(hole), size_);
  return {true, end - place};
}

std::uint64_t SparseFile::DataFrom(std::uint64_t place) const {
  Stretch next = At(place);
  return next.is_data ? std::min(place, size_) : place + next.length;
}

void SparseFile::Read(std::uint64_t place, char* to, std::size_t length) const {
  for (std::size_t done = 0; done < length;) {
    ssize_t count = pread(file_, to + done, length - done, static_cast<off_t>(place + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(Verdict::kFail, fmt::format("{}: {}", path_, std::strerror(errno)));
    if (count == 0) throw Error(Verdict::kFail, path_ + ": the file became shorter while it was read");
    done += static_cast<std::size_t>(count);
  }
}

std::string SparseFile::Read(std::uint64_t place, std::size_t length) const {
  std::string bytes(std::min<std::uint64_t>(length, size_ - std::min(place, size_)), '\0');
  Read(place, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace nodepool
