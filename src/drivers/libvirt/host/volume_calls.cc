#include "drivers/libvirt/host/volume_calls.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include <algorithm>

#include "base/error.h"
#include "drivers/libvirt/host/connection.h"

namespace nodepool::drivers::libvirt::calls {

namespace {

constexpr std::size_t kPiece = 256 * 1024;

VolumeInfo Describe(virStorageVolPtr volume) {
  Allocated<char> xml(virStorageVolGetXMLDesc(volume, 0));
  if (!xml) throw LastFault("describing a volume");
  return ParseVolume(xml.get());
}

StreamHandle NewStream(const Connection& connection) {
  StreamHandle stream(virStreamNew(connection.get(), 0));
  if (!stream) throw LastFault("opening a stream");
  return stream;
}

// A stream that failed, or is not to be finished, has to be aborted before it is freed.
[[noreturn]] void Abort(const StreamHandle& stream, const std::string& what) {
  Error fault = LastFault(what);
  virStreamAbort(stream.get());
  throw fault;
}

void Finish(const StreamHandle& stream, const std::string& what) {
  if (virStreamFinish(stream.get()) < 0) throw LastFault(what);
}

struct Part {
  std::uint64_t offset;
  std::uint64_t length;
};

// The part of a volume that choose(its size) names.
template <class Choose>
std::string ReadPart(const Connection& connection, const std::string& name, Choose choose) {
  std::string what = fmt::format("reading volume {}", name);
  VolumeHandle volume = connection.FindVolume(name);
  virStorageVolInfo info{};
  if (virStorageVolGetInfo(volume.get(), &info) < 0) throw LastFault(what);
  Part part = choose(info.capacity);
  if (part.length == 0) return "";
  StreamHandle stream = NewStream(connection);
  if (virStorageVolDownload(volume.get(), stream.get(), part.offset, part.length, 0) < 0)
    throw LastFault(what);
  std::string bytes(part.length, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    int taken = virStreamRecv(stream.get(), bytes.data() + got, std::min(kPiece, bytes.size() - got));
    if (taken < 0) Abort(stream, what);
    if (taken == 0) break;
    got += static_cast<std::size_t>(taken);
  }
  Finish(stream, what);
  bytes.resize(got);
  return bytes;
}

}  // namespace

PoolSpace ReadSpace(const Connection& connection) {
  virStoragePoolInfo info{};
  if (virStoragePoolGetInfo(connection.pool(), &info) < 0) throw LastFault("reading the storage pool's size");
  return {info.capacity, info.available};
}

std::vector<VolumeInfo> ListVolumes(const Connection& connection) {
  // Refused while a stream is open in the pool; the list is then as old as the last one.
  virStoragePoolRefresh(connection.pool(), 0);
  virStorageVolPtr* list = nullptr;
  int count = virStoragePoolListAllVolumes(connection.pool(), &list, 0);
  if (count < 0) throw LastFault("listing volumes");
  Allocated<virStorageVolPtr> freed(list);
  std::vector<VolumeHandle> handles(list, list + count);
  std::vector<VolumeInfo> volumes;
  for (const VolumeHandle& volume : handles) {
    Allocated<char> xml(virStorageVolGetXMLDesc(volume.get(), 0));
    // It was deleted meanwhile.
    if (xml) volumes.push_back(ParseVolume(xml.get()));
  }
  return volumes;
}

VolumeInfo ReadVolume(const Connection& connection, const std::string& name) {
  return Describe(connection.FindVolume(name).get());
}

std::string CreateVolume(const Connection& connection, const NewVolume& volume) {
  VolumeHandle made(virStorageVolCreateXML(connection.pool(), VolumeXml(volume).c_str(), 0));
  if (!made) throw LastFault(fmt::format("making volume {}", volume.name));
  Allocated<char> path(virStorageVolGetPath(made.get()));
  if (!path) throw LastFault(fmt::format("finding the path of volume {}", volume.name));
  return path.get();
}

void WriteVolume(const Connection& connection, const std::string& name, const std::string& bytes) {
  std::string what = fmt::format("writing volume {}", name);
  VolumeHandle volume = connection.FindVolume(name);
  StreamHandle stream = NewStream(connection);
  if (virStorageVolUpload(volume.get(), stream.get(), 0, bytes.size(), 0) < 0) throw LastFault(what);
  for (std::size_t sent = 0; sent < bytes.size();) {
    std::size_t piece = std::min(kPiece, bytes.size() - sent);
    int taken = virStreamSend(stream.get(), bytes.data() + sent, piece);
    if (taken <= 0) Abort(stream, what);
    sent += static_cast<std::size_t>(taken);
  }
  Finish(stream, what);
}

std::string ReadVolumeStart(const Connection& connection, const std::string& name, std::uint64_t most) {
  return ReadPart(connection, name, [most](std::uint64_t size) { return Part{0, std::min(size, most)}; });
}

std::string ReadVolumeEnd(const Connection& connection, const std::string& name, std::uint64_t most) {
  return ReadPart(connection, name, [most](std::uint64_t size) {
    std::uint64_t length = std::min(size, most);
    return Part{size - length, length};
  });
}

void DeleteVolume(const Connection& connection, const std::string& name) {
  VolumeHandle volume(virStorageVolLookupByName(connection.pool(), name.c_str()));
  bool is_gone = volume ? virStorageVolDelete(volume.get(), 0) == 0 : false;
  if (!is_gone && LastCode() != VIR_ERR_NO_STORAGE_VOL)
    throw LastFault(fmt::format("deleting volume {}", name));
}

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
