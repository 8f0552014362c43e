#include "drivers/libvirt/host/copy.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include "base/error.h"
#include "drivers/libvirt/host/faults.h"

namespace nodepool::drivers::libvirt::calls {

namespace {

struct Sink {
  virStreamPtr target;
  StopFlag stop;
};

// libvirt's callbacks: negative ends the copy.
int Send(virStreamPtr, const char* bytes, std::size_t count, void* opaque) {
  auto& sink = *static_cast<Sink*>(opaque);
  for (std::size_t sent = 0; sent < count;) {
    if (*sink.stop) return -1;
    int taken = virStreamSend(sink.target, bytes + sent, count - sent);
    if (taken <= 0) return -1;
    sent += static_cast<std::size_t>(taken);
  }
  return static_cast<int>(count);
}

int SendHole(virStreamPtr, long long length, void* opaque) {
  return virStreamSendHole(static_cast<Sink*>(opaque)->target, length, 0);
}

StreamHandle NewStream(const Connection& connection, const std::string& what) {
  StreamHandle stream(virStreamNew(connection.get(), 0));
  if (!stream) throw LastFault(what);
  return stream;
}

}  // namespace

void CopyVolume(const Connection& from, const Connection& to, const std::string& name, const StopFlag& stop) {
  std::string what = fmt::format("copying volume {}", name);
  VolumeHandle source = from.FindVolume(name), target = to.FindVolume(name);
  StreamHandle input = NewStream(from, what), output = NewStream(to, what);
  // A length of 0 means all of it.
  if (virStorageVolDownload(source.get(), input.get(), 0, 0, VIR_STORAGE_VOL_DOWNLOAD_SPARSE_STREAM) < 0 ||
      virStorageVolUpload(target.get(), output.get(), 0, 0, VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM) < 0) {
    throw LastFault(what);
  }
  Sink sink{output.get(), stop};
  // After a failure libvirt has aborted the stream that it reads.
  if (virStreamSparseRecvAll(input.get(), &Send, &SendHole, &sink) < 0) {
    Error fault = LastFault(what);
    virStreamAbort(output.get());
    throw *stop ? Error(Verdict::kCancelled, what + " was stopped") : fault;
  }
  if (virStreamFinish(input.get()) < 0 || virStreamFinish(output.get()) < 0) throw LastFault(what);
}

}  // namespace nodepool::drivers::libvirt::calls
