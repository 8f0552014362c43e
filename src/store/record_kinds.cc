#include "store/record_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "zk/recipes/lock.h"

namespace nodepool::store::paths {

namespace {

std::vector<std::string> PartsBelow(std::string_view root, std::string_view path) {
  if (!path.starts_with(root) || path.size() <= root.size() || path[root.size()] != '/') return {};
  return Split(path.substr(root.size() + 1), '/');
}

// Ten digits, as the server numbers znodes.
bool IsSequenceNumber(std::string_view name) {
  return name.size() == 10 && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// As it is written: digits without a zero in front.
std::optional<std::int64_t> JobNumber(const std::string& name) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool is_number = error == std::errc() && end == name.data() + name.size() && number > 0;
  return is_number && std::to_string(number) == name ? std::optional(number) : std::nullopt;
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

std::string WithEscapes(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (IsPlain(c)) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

// %XX becomes the byte; what is malformed stays.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                     std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    plain += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

}  // namespace

std::string Node(const NodeId& id) { return fmt::format("{}/{}", kNodes, id); }
std::string NodeLock(const NodeId& id) { return fmt::format("{}/{}/lock", kNodes, id); }
std::string Request(const RequestId& id) { return fmt::format("{}/{}", kRequests, id); }
std::string RequestLock(const RequestId& id) { return fmt::format("{}/{}", kRequestLocks, id); }
std::string Image(const ImageName& image) { return fmt::format("{}/{}", kImages, image); }
std::string Pause(const ImageName& image) { return fmt::format("{}/{}/pause", kImages, image); }
std::string BuildRequest(const ImageName& image) {
  return fmt::format("{}/{}/request-build", kImages, image);
}
std::string Builds(const ImageName& image) { return fmt::format("{}/{}/builds", kImages, image); }
std::string ImageLock(const ImageName& image) { return Builds(image) + "/lock"; }
std::string Build(const BuildKey& key) { return fmt::format("{}/{}", Builds(key.image), key.build); }
std::string BuildLock(const BuildKey& key) { return Build(key) + "/lock"; }
std::string Providers(const BuildKey& build) {
  return fmt::format("{}/{}/builds/{}/providers", kImages, build.image, build.build);
}
std::string Uploads(const BuildKey& build, const ProviderName& provider) {
  return fmt::format("{}/{}/images", Providers(build), provider);
}
std::string Upload(const UploadKey& key) {
  return fmt::format("{}/{}", Uploads(key.build, key.provider), key.upload);
}
std::string UploadsLock(const BuildKey& build, const ProviderName& provider) {
  return Uploads(build, provider) + "/lock";
}
std::string UploadLock(const UploadKey& key) { return Upload(key) + "/lock"; }
std::string Components(ComponentKind kind) { return fmt::format("{}/{}", kComponents, ToString(kind)); }

std::string JobRule(const JobId& id) { return fmt::format("{}/{}", kJobs, id); }
std::string HoldNote(const NodeId& node) { return fmt::format("{}/{}", kHoldNotes, node); }
std::string Lease(const LeaseId& id) { return fmt::format("{}/{}", kLeases, id); }

std::string RunnerRun(const RunId& id) { return fmt::format("{}/{}", kRunnerRuns, id); }
std::string RunnerSet(const RunnerSetKey& key) {
  return fmt::format("{}/sets/{}/{}", kRunners, key.service, key.set);
}
std::string HookedJobs(const std::string& service) { return fmt::format("{}/jobs/{}", kRunners, service); }
std::string HookedJob(const HookedJobKey& key) {
  return fmt::format("{}/{}", HookedJobs(key.service), key.job);
}
std::string RunnerElection(const RunnerSetKey& key) {
  return fmt::format("{}/runners/{}/{}", kElections, key.service, key.set);
}

std::string ProviderPause(const ProviderName& provider) {
  return fmt::format("{}/{}", kProviderPauses, WithEscapes(provider.value));
}

std::string Breaker(const BreakerKey& key) {
  std::string path = fmt::format("{}/{}", kBreakers, WithEscapes(key.provider.value));
  if (!key.pool.empty()) path += ":" + WithEscapes(key.pool.value);
  if (!key.label.empty()) path += ":" + WithEscapes(key.label.value);
  return path;
}

std::string NamedLock(std::string_view name) {
  std::string path = fmt::format("{}/", kNamedLocks);
  for (char c : name) {
    if (c == '/') {
      path += "%2F";
    } else if (c == '%') {
      path += "%25";
    } else {
      path += c;
    }
  }
  return path;
}

BelowNodes ParseBelowNodes(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kNodes, path);
  BelowNodes result;
  if (parts.empty()) return result;
  result.id = NodeId(parts[0]);
  if (parts.size() == 1) {
    result.part = BelowNodes::Part::kRecord;
  } else if (parts.size() == 3 && parts[1] == "lock" && zk::IsContender(parts[2])) {
    result.part = BelowNodes::Part::kContender;
    result.contender = parts[2];
  }
  return result;
}

std::optional<RequestId> ParseRequest(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kRequests, path);
  if (parts.size() != 1) return std::nullopt;
  return RequestId(parts[0]);
}

std::optional<BelowRequestLocks> ParseBelowRequestLocks(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kRequestLocks, path);
  if (parts.size() == 1) return BelowRequestLocks{RequestId(parts[0]), ""};
  if (parts.size() == 2 && zk::IsContender(parts[1])) return BelowRequestLocks{RequestId(parts[0]), parts[1]};
  return std::nullopt;
}

BelowImages ParseBelowImages(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kImages, path);
  BelowImages result;
  if (parts.empty()) return result;
  result.key.build.image = ImageName(parts[0]);
  if (parts.size() == 1) {
    result.part = BelowImages::Part::kImage;
  } else if (parts.size() == 2 && parts[1] == "pause") {
    result.part = BelowImages::Part::kPause;
  } else if (parts.size() == 2 && parts[1] == "request-build") {
    result.part = BelowImages::Part::kBuildRequest;
  }
  if (parts.size() < 3 || parts[1] != "builds") return result;
  if (!IsBuildId(parts[2])) {
    if (parts.size() != 4 || !zk::IsContender(parts[3])) return result;
    result.part = BelowImages::Part::kImageContender;
    result.contender = parts[3];
    return result;
  }
  result.key.build.build = BuildId(parts[2]);
  if (parts.size() == 3) {
    result.part = BelowImages::Part::kBuild;
  } else if (parts.size() == 5 && parts[3] == "providers") {
    result.part = BelowImages::Part::kProvider;
    result.key.provider = ProviderName(parts[4]);
  } else if (parts.size() == 7 && parts[3] == "providers" && parts[5] == "images" && IsUploadId(parts[6])) {
    result.part = BelowImages::Part::kUpload;
    result.key.provider = ProviderName(parts[4]);
    result.key.upload = UploadId(parts[6]);
  } else if (parts.size() == 8 && parts[3] == "providers" && parts[5] == "images" && parts[6] == "lock" &&
             zk::IsContender(parts[7])) {
    result.part = BelowImages::Part::kUploadsContender;
    result.key.provider = ProviderName(parts[4]);
    result.contender = parts[7];
  }
  return result;
}

std::optional<ComponentKind> ParseComponent(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kComponents, path);
  if (parts.size() != 2) return std::nullopt;
  for (ComponentKind kind : {ComponentKind::kLauncher, ComponentKind::kBuilder, ComponentKind::kPool}) {
    if (parts[0] == ToString(kind)) return kind;
  }
  return std::nullopt;
}

BelowJobs ParseBelowJobs(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kJobs, path);
  BelowJobs result;
  if (parts.size() == 1 && IsSequenceNumber(parts[0])) result.rule = JobId(parts[0]);
  if (parts.size() == 2 && parts[0] == "holds") result.hold_note = NodeId(parts[1]);
  return result;
}

BelowRunners ParseBelowRunners(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kRunners, path);
  BelowRunners result;
  if (parts.size() == 2 && parts[0] == "runs" && IsRunId(parts[1])) result.run = RunId(parts[1]);
  if (parts.size() == 3 && parts[0] == "sets") result.set = RunnerSetKey{parts[1], parts[2]};
  if (parts.size() == 3 && parts[0] == "jobs") {
    if (std::optional<std::int64_t> job = JobNumber(parts[2])) result.job = HookedJobKey{parts[1], *job};
  }
  return result;
}

std::optional<LeaseId> ParseLease(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kLeases, path);
  if (parts.size() != 1 || !IsLeaseId(parts[0])) return std::nullopt;
  return LeaseId(parts[0]);
}

std::optional<ProviderName> ParseProviderPause(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kProviderPauses, path);
  if (parts.size() != 1) return std::nullopt;
  ProviderName provider(WithoutEscapes(parts[0]));
  if (ProviderPause(provider) != path) return std::nullopt;
  return provider;
}

std::optional<BreakerKey> ParseBreaker(std::string_view path) {
  std::vector<std::string> parts = PartsBelow(kBreakers, path);
  if (parts.size() != 1) return std::nullopt;
  std::vector<std::string> names = Split(parts[0], ':');
  names.resize(3);
  BreakerKey key{ProviderName(WithoutEscapes(names[0])), PoolName(WithoutEscapes(names[1])),
                 LabelName(WithoutEscapes(names[2]))};
  if (Breaker(key) != path) return std::nullopt;
  return key;
}

bool IsUploadId(std::string_view name) { return IsSequenceNumber(name); }

bool IsBuildId(std::string_view name) { return name != "lock"; }

std::string Below(std::string_view root, std::string_view path) {
  return std::string(path.substr(std::min(path.size(), root.size() + 1)));
}

}  // namespace nodepool::store::paths

namespace nodepool::store {

Revision RevisionOf(const zk::Stat& stat) {
  Revision revision;
  revision.version = stat.version;
  revision.mzxid = stat.mzxid;
  revision.created = WallTime(std::chrono::milliseconds(stat.ctime));
  revision.modified = WallTime(std::chrono::milliseconds(stat.mtime));
  revision.ephemeral_owner = stat.ephemeral_owner;
  return revision;
}

std::optional<NodeId> RecordKind<StoredNode>::IdIn(std::string_view path) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  return place.part == paths::BelowNodes::Part::kRecord ? std::optional(place.id) : std::nullopt;
}

std::optional<std::string> RecordKind<Component>::IdIn(std::string_view path) {
  if (!paths::ParseComponent(path)) return std::nullopt;
  return paths::Below(kRoot, path);
}

Expected<Component> RecordKind<Component>::Parse(const std::string& id, const std::string& data, WallTime) {
  std::optional<ComponentKind> kind = paths::ParseComponent(fmt::format("{}/{}", kRoot, id));
  if (!kind) return Unexpected(Verdict::kInvalid, "a component of an unknown kind");
  return ParseComponent(*kind, data);
}

}  // namespace nodepool::store
