#include "drivers/libvirt/host/fetch.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/digest.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/volume_calls.h"
#include "net/http/url.h"

namespace nodepool::drivers::libvirt::calls {

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

}  // namespace nodepool::drivers::libvirt::calls
