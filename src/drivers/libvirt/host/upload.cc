#include "drivers/libvirt/host/upload.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "drivers/libvirt/host/connection.h"

namespace nodepool::drivers::libvirt::calls {

namespace {

struct Source {
  HashedFile file;
  StopFlag stop;
  std::string fault;  // why the file could not be read
};

Source& Of(void* source) { return *static_cast<Source*>(source); }

// libvirt's callbacks: negative ends the upload.
int Read(virStreamPtr, char* buffer, std::size_t most, void* source) {
  if (*Of(source).stop) return -1;
  try {
    return static_cast<int>(Of(source).file.Read(buffer, most));
  } catch (const Error& error) {
    // No exception passes through libvirt.
    Of(source).fault = error.what();
    return -1;
  }
}

int Next(virStreamPtr, int* is_data, long long* length, void* source) {
  SparseFile::Stretch section = Of(source).file.Next();
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
  Source source{HashedFile(path), stop, ""};
  unsigned flags = VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM;
  if (virStorageVolUpload(target.get(), stream.get(), 0, source.file.size(), flags) < 0)
    throw LastFault(what);
  // After a failure libvirt has aborted the stream.
  if (virStreamSparseSendAll(stream.get(), &Read, &Next, &Skip, &source) < 0) {
    if (*stop) throw Error(Verdict::kCancelled, what + " was stopped");
    if (!source.fault.empty()) throw Error(Verdict::kFail, source.fault);
    throw LastFault(what);
  }
  if (virStreamFinish(stream.get()) < 0) throw LastFault(what);
  return source.file.Sha256();
}

}  // namespace nodepool::drivers::libvirt::calls

namespace nodepool::drivers::libvirt {

std::size_t HashedFile::Read(char* buffer, std::size_t most) {
  auto length = static_cast<std::size_t>(std::min<std::uint64_t>(most, file_.size() - place_));
  file_.Read(place_, buffer, length);
  digest_.Add(std::string_view(buffer, length));
  place_ += length;
  return length;
}

void HashedFile::Skip(std::uint64_t length) {
  static constexpr std::array<char, 65536> kZeros{};
  place_ += length;
  for (std::uint64_t left = length; left > 0;) {
    std::uint64_t part = std::min<std::uint64_t>(left, kZeros.size());
    digest_.Add(std::string_view(kZeros.data(), static_cast<std::size_t>(part)));
    left -= part;
  }
}

}  // namespace nodepool::drivers::libvirt
