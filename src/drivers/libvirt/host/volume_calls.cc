#include "drivers/libvirt/host/volume_calls.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <libvirt/virterror.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "base/crypto.h"
#include "base/error.h"
#include "drivers/libvirt/host/connection.h"
#include "net/http/curl.h"

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

namespace {

using Transfer = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

constexpr long kMostRedirections = 10;
constexpr long kConnectSeconds = 30;
constexpr long kStandstillSeconds = 60;

// What comes from the network, on its way to the host.
struct Fetch {
  const Connection& connection;
  const std::string& name;
  std::uint64_t reserve;  // bytes
  StopFlag stop;
  CURL* transfer;
  Digest digest;
  StreamHandle stream = nullptr;  // from the first byte on
  std::uint64_t left = 0;         // bytes that are to come
  std::optional<Error> fault = std::nullopt;
};

// The volume is as long as the answer says.
void OpenVolume(Fetch& fetch) {
  curl_off_t length = -1;
  curl_easy_getinfo(fetch.transfer, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (length < 0) throw Error(Verdict::kFail, "the server does not say how long the image is");
  fetch.left = static_cast<std::uint64_t>(length);
  // Else the space is as old as the last list; refused while a stream is open in the pool.
  virStoragePoolRefresh(fetch.connection.pool(), 0);
  CheckRoom(fetch.left, ReadSpace(fetch.connection), fetch.reserve);
  CreateVolume(fetch.connection, {.name = fetch.name, .capacity = fetch.left});
  VolumeHandle volume = fetch.connection.FindVolume(fetch.name);
  StreamHandle stream(virStreamNew(fetch.connection.get(), 0));
  if (!stream || virStorageVolUpload(volume.get(), stream.get(), 0, 0, 0) < 0) {
    throw LastFault("writing volume " + fetch.name);
  }
  fetch.stream = std::move(stream);
}

void Write(Fetch& fetch, std::string_view bytes) {
  if (!fetch.stream) OpenVolume(fetch);
  if (bytes.size() > fetch.left)
    throw Error(Verdict::kFail, "the server sends more than it has said that the image is long");
  fetch.left -= bytes.size();
  fetch.digest.Add(bytes);
  while (!bytes.empty()) {
    int taken = virStreamSend(fetch.stream.get(), bytes.data(), bytes.size());
    if (taken <= 0) throw LastFault("writing volume " + fetch.name);
    bytes.remove_prefix(static_cast<std::size_t>(taken));
  }
}

// curl's callbacks; no error may pass through curl.
std::size_t Take(char* bytes, std::size_t, std::size_t count, void* opaque) {
  auto& fetch = *static_cast<Fetch*>(opaque);
  try {
    Write(fetch, {bytes, count});
    return count;
  } catch (const Error& error) {
    fetch.fault = error;
  }
  return CURL_WRITEFUNC_ERROR;
}

int IsToStop(void* opaque, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<Fetch*>(opaque)->stop ? 1 : 0;
}

void SetOptions(CURL* transfer, const ImageOrigin& origin, Fetch& fetch) {
  curl_easy_setopt(transfer, CURLOPT_URL, origin.url.c_str());
  curl_easy_setopt(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(transfer, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(transfer, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(transfer, CURLOPT_MAXREDIRS, kMostRedirections);
  curl_easy_setopt(transfer, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(transfer, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(transfer, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(transfer, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(transfer, CURLOPT_LOW_SPEED_TIME, kStandstillSeconds);
  curl_easy_setopt(transfer, CURLOPT_WRITEFUNCTION, &Take);
  curl_easy_setopt(transfer, CURLOPT_WRITEDATA, &fetch);
  curl_easy_setopt(transfer, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(transfer, CURLOPT_XFERINFOFUNCTION, &IsToStop);
  curl_easy_setopt(transfer, CURLOPT_XFERINFODATA, &fetch);
}

[[noreturn]] void Abort(Fetch& fetch, const std::string& what, CURLcode code) {
  if (fetch.stream) virStreamAbort(fetch.stream.get());
  if (*fetch.stop) throw Error(Verdict::kCancelled, what + " was stopped");
  if (fetch.fault) throw fetch.fault->In(what);
  throw Error(Verdict::kRetry, fmt::format("{}: {}", what, curl_easy_strerror(code)));
}

}  // namespace

std::string Fetching(const ImageOrigin& origin) {
  std::optional<net::Url> url = net::Url::Parse(origin.url);
  if (url) url->RemoveSecrets();
  return fmt::format("fetching {}", url ? url->text() : "an image");
}

void CheckRoom(std::uint64_t length, const PoolSpace& space, std::uint64_t reserve) {
  if (space.available >= reserve && length <= space.available - reserve) return;
  constexpr double kGigabyte = kGibibyte;
  throw Error(
      Verdict::kQuota,
      fmt::format("the image has {:.1f} GiB, and the storage pool has {:.1f} GiB, of which {:.1f} stay free "
                  "(min-free-disk)",
                  double(length) / kGigabyte, double(space.available) / kGigabyte,
                  double(reserve) / kGigabyte));
}

void FetchVolume(const Connection& connection, const std::string& name, const ImageOrigin& origin,
                 std::uint64_t reserve, const StopFlag& stop) {
  std::string what = Fetching(origin);
  Transfer transfer(curl_easy_init(), &curl_easy_cleanup);
  Fetch fetch{connection, name, reserve, stop, transfer.get(), Digest(origin.algorithm)};
  SetOptions(transfer.get(), origin, fetch);
  CURLcode code = curl_easy_perform(transfer.get());
  if (code != CURLE_OK) Abort(fetch, what, code);
  if (!fetch.stream) throw Error(Verdict::kFail, what + ": the answer is empty");
  if (virStreamFinish(fetch.stream.get()) < 0) throw LastFault("writing volume " + name);
  std::string checksum = fetch.digest.Hex();
  if (checksum == origin.checksum) return;
  throw Error(Verdict::kInvalid, fmt::format("{}: it has the {} {}, but checksum says {}", what,
                                             origin.algorithm, checksum, origin.checksum));
}

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
