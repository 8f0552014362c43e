#include "drivers/libvirt/host/upload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libvirt/virterror.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "drivers/libvirt/host/connection.h"

namespace nodepool::drivers::libvirt::calls {

namespace {

struct Source {
  SparseFile file;
  StopFlag stop;
};

Source& Of(void* source) { return *static_cast<Source*>(source); }

// libvirt's callbacks: negative ends the upload.
int Read(virStreamPtr, char* buffer, std::size_t most, void* source) {
  if (*Of(source).stop) return -1;
  return static_cast<int>(Of(source).file.Read(buffer, most));
}

int Next(virStreamPtr, int* is_data, long long* length, void* source) {
  SparseFile::Section section = Of(source).file.Next();
  *is_data = section.is_data ? 1 : 0;
  *length = static_cast<long long>(section.length);
  return 0;
}

int Skip(virStreamPtr, long long length, void* source) {
  Of(source).file.Skip(static_cast<std::uint64_t>(length));
  return 0;
}

}  // namespace

std::string UploadFile(const Connection& connection, const std::string& volume, const std::string& path,
                       const StopFlag& stop) {
  std::string what = fmt::format("uploading {} to volume {}", path, volume);
  VolumeHandle target = connection.FindVolume(volume);
  StreamHandle stream(virStreamNew(connection.get(), 0));
  if (!stream) throw LastFault(what);
  Source source{SparseFile(path), stop};
  unsigned flags = VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM;
  if (virStorageVolUpload(target.get(), stream.get(), 0, source.file.size(), flags) < 0)
    throw LastFault(what);
  // After a failure libvirt has aborted the stream.
  if (virStreamSparseSendAll(stream.get(), &Read, &Next, &Skip, &source) < 0) {
    if (*stop) throw Error(Verdict::kCancelled, what + " was stopped");
    throw LastFault(what);
  }
  if (virStreamFinish(stream.get()) < 0) throw LastFault(what);
  return source.file.Sha256();
}

}  // namespace nodepool::drivers::libvirt::calls

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
