#include "drivers/libvirt/host/upload.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include "base/error.h"
#include "drivers/libvirt/host/faults.h"
#include "drivers/libvirt/host/sparse_file.h"

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
