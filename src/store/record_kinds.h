#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "model/breaker.h"
#include "model/component.h"
#include "store/records.h"
#include "zk/znode.h"

namespace nodepool::store::paths {

// The paths of everything in the tree (coordination.md 3.1). No other file knows them.

inline constexpr std::string_view kNodes = "/nodepool/nodes";
inline constexpr std::string_view kRequests = "/nodepool/requests";
inline constexpr std::string_view kRequestLocks = "/nodepool/requests-lock";
inline constexpr std::string_view kImages = "/nodepool/images";
inline constexpr std::string_view kComponents = "/nodepool/components";
inline constexpr std::string_view kNamedLocks = "/nodepool/locks";
inline constexpr std::string_view kElections = "/nodepool/elections";
inline constexpr std::string_view kMinReady = "/nodepool/min-ready";
inline constexpr std::string_view kJobs = "/nodepool/jobs";
inline constexpr std::string_view kHoldNotes = "/nodepool/jobs/holds";
inline constexpr std::string_view kLeases = "/nodepool/leases";
inline constexpr std::string_view kProviderPauses = "/nodepool/paused-providers";
inline constexpr std::string_view kBreakers = "/nodepool/breakers";
inline constexpr std::string_view kRunners = "/nodepool/runners";
inline constexpr std::string_view kRunnerRuns = "/nodepool/runners/runs";

std::string Node(const NodeId& id);
std::string NodeLock(const NodeId& id);
std::string Request(const RequestId& id);
std::string RequestLock(const RequestId& id);
std::string Image(const ImageName& image);
std::string Pause(const ImageName& image);
std::string BuildRequest(const ImageName& image);
std::string Builds(const ImageName& image);
std::string ImageLock(const ImageName& image);  // of the builder that builds it
std::string Build(const BuildKey& key);
std::string BuildLock(const BuildKey& key);  // of the process that marks it
std::string Providers(const BuildKey& build);
std::string Uploads(const BuildKey& build, const ProviderName& provider);
std::string UploadsLock(const BuildKey& build,
                        const ProviderName& provider);  // of the builder that uploads it there
std::string Upload(const UploadKey& key);
std::string UploadLock(const UploadKey& key);  // of the process that marks or removes it
std::string Components(ComponentKind kind);
std::string JobRule(const JobId& id);
std::string HoldNote(const NodeId& node);
std::string Lease(const LeaseId& id);
std::string RunnerRun(const RunId& id);
std::string RunnerSet(const RunnerSetKey& key);
std::string RunnerElection(const RunnerSetKey& key);
std::string HookedJobs(const std::string& service);
std::string HookedJob(const HookedJobKey& key);
// Bytes that are no ASCII letters, digits, "-" or "_" become %XX.
std::string ProviderPause(const ProviderName& provider);
// "<provider>", "<provider>:<pool>" or "<provider>:<pool>:<label>", each with bytes written as above.
std::string Breaker(const BreakerKey& key);
// A "/" in the name becomes "%2F", a "%" becomes "%25".
std::string NamedLock(std::string_view name);

// What a path below kNodes means.
struct BelowNodes {
  enum class Part { kRecord, kContender, kOther };
  Part part = Part::kOther;
  NodeId id;
  std::string contender;  // the name
};
BelowNodes ParseBelowNodes(std::string_view path);

// The id of a request's record; nullopt for anything else below kRequests.
std::optional<RequestId> ParseRequest(std::string_view path);

// What a path below kRequestLocks means; the contender is empty for the directory.
struct BelowRequestLocks {
  RequestId id;
  std::string contender;
};
std::optional<BelowRequestLocks> ParseBelowRequestLocks(std::string_view path);

// What a path below kImages means; the fields that the part does not need are empty.
struct BelowImages {
  enum class Part {
    kImage,
    kPause,
    kBuildRequest,
    kImageContender,  // of a builder that builds, or wants to
    kBuild,
    kProvider,          // of a build
    kUploadsContender,  // of a builder that uploads, or wants to
    kUpload,
    kOther,
  };
  Part part = Part::kOther;
  UploadKey key;
  std::string contender;  // the name
};
BelowImages ParseBelowImages(std::string_view path);

// The kind of a component by its path below kComponents; nullopt for the
// directories and for kinds we do not know.
std::optional<ComponentKind> ParseComponent(std::string_view path);

// What a path below kJobs means; one of the two is set, or none.
struct BelowJobs {
  std::optional<JobId> rule;
  std::optional<NodeId> hold_note;
};
BelowJobs ParseBelowJobs(std::string_view path);

// What a path below kRunners means; one of them is set, or none.
struct BelowRunners {
  std::optional<RunId> run;
  std::optional<RunnerSetKey> set;
  std::optional<HookedJobKey> job;
};
BelowRunners ParseBelowRunners(std::string_view path);

// The id of a lease's record; nullopt for anything else below kLeases.
std::optional<LeaseId> ParseLease(std::string_view path);

// The provider whose switch it is; nullopt for anything else below kProviderPauses, and for names that
// ProviderPause() does not make.
std::optional<ProviderName> ParseProviderPause(std::string_view path);

// What the breaker is of; nullopt for anything else below kBreakers, and for names that Breaker() does not
// make.
std::optional<BreakerKey> ParseBreaker(std::string_view path);

// Whether a child of an uploads directory is an upload: ten digits.
bool IsUploadId(std::string_view name);
// Whether a child of a builds directory is a build: anything but its lock.
bool IsBuildId(std::string_view name);

// `path` without `root` and the slash after it.
std::string Below(std::string_view root, std::string_view path);

}  // namespace nodepool::store::paths

namespace nodepool::store {

Revision RevisionOf(const zk::Stat& stat);

// The differences between the kinds of records. What is read and written has Path(), what is locked
// LockPath(), what a RecordCache follows kRoot and IdIn(). A cache also heeds, where they are declared:
// kLogger; FaultOf(), what is wrong with an id; InPlaceOfMalformed(), what it lists for a record that cannot
// be read.
template <class Stored>
struct RecordKind;

template <>
struct RecordKind<StoredNode> {
  using Id = NodeId;
  using Record = Node;
  static constexpr const char* kName = "node";
  static std::string Path(const NodeId& id) { return paths::Node(id); }
  static constexpr std::string_view kRoot = paths::kNodes;
  static std::string LockPath(const NodeId& id) { return paths::NodeLock(id); }
  static std::optional<NodeId> IdIn(std::string_view path);
  static Expected<Node> Parse(const NodeId&, const std::string& data, WallTime now) {
    return ParseNode(data, now);
  }
};

template <>
struct RecordKind<StoredRequest> {
  using Id = RequestId;
  using Record = NodeRequest;
  static constexpr const char* kName = "request";
  static constexpr std::string_view kRoot = paths::kRequests;
  static std::string Path(const RequestId& id) { return paths::Request(id); }
  static std::string LockPath(const RequestId& id) { return paths::RequestLock(id); }
  static std::optional<RequestId> IdIn(std::string_view path) { return paths::ParseRequest(path); }
  static const char* FaultOf(const RequestId& id) {
    return ParseRequestId(id) ? nullptr : "the name is not <priority>-<number>";
  }
  static Expected<NodeRequest> Parse(const RequestId&, const std::string& data, WallTime now) {
    return ParseNodeRequest(data, now);
  }
};

template <>
struct RecordKind<StoredBuild> {
  using Id = BuildKey;
  using Record = ImageBuild;
  static constexpr const char* kName = "build";
  static std::string Path(const BuildKey& id) { return paths::Build(id); }
  static std::string LockPath(const BuildKey& id) { return paths::BuildLock(id); }
  static Expected<ImageBuild> Parse(const BuildKey&, const std::string& data, WallTime now) {
    return ParseImageBuild(data, now);
  }
};

template <>
struct RecordKind<StoredUpload> {
  using Id = UploadKey;
  using Record = ImageUpload;
  static constexpr const char* kName = "upload";
  static std::string Path(const UploadKey& id) { return paths::Upload(id); }
  static std::string LockPath(const UploadKey& id) { return paths::UploadLock(id); }
  static Expected<ImageUpload> Parse(const UploadKey&, const std::string& data, WallTime now) {
    return ParseImageUpload(data, now);
  }
};

template <>
struct RecordKind<StoredJobRule> {
  using Id = JobId;
  static constexpr const char* kName = "rule about jobs";
  static std::optional<JobId> IdIn(std::string_view path) { return paths::ParseBelowJobs(path).rule; }
  static Expected<JobRule> Parse(const JobId&, const std::string& data, WallTime) {
    return ParseJobRule(data);
  }
};

template <>
struct RecordKind<StoredHoldNote> {
  using Id = NodeId;
  static constexpr const char* kName = "hold note";
  static std::optional<NodeId> IdIn(std::string_view path) { return paths::ParseBelowJobs(path).hold_note; }
  static Expected<HoldNote> Parse(const NodeId&, const std::string& data, WallTime) {
    return ParseHoldNote(data);
  }
};

template <>
struct RecordKind<StoredLease> {
  using Id = LeaseId;
  using Record = Lease;
  static constexpr const char* kName = "lease";
  static constexpr std::string_view kRoot = paths::kLeases;
  static std::string Path(const LeaseId& id) { return paths::Lease(id); }
  static std::optional<LeaseId> IdIn(std::string_view path) { return paths::ParseLease(path); }
  static Expected<Lease> Parse(const LeaseId&, const std::string& data, WallTime) { return ParseLease(data); }
};

template <>
struct RecordKind<ProviderPause> {
  using Id = ProviderName;
  static constexpr const char* kName = "pause";
  static constexpr std::string_view kRoot = paths::kProviderPauses;
  static std::optional<ProviderName> IdIn(std::string_view path) { return paths::ParseProviderPause(path); }
  static Expected<ProviderPause> Parse(const ProviderName&, const std::string& data, WallTime) {
    return ParseProviderPause(data);
  }
  // That the record exists pauses the provider.
  static ProviderPause InPlaceOfMalformed() { return {}; }
};

template <>
struct RecordKind<Breaker> {
  using Id = BreakerKey;
  static constexpr const char* kName = "breaker";
  static constexpr std::string_view kRoot = paths::kBreakers;
  static std::optional<BreakerKey> IdIn(std::string_view path) { return paths::ParseBreaker(path); }
  static Expected<Breaker> Parse(const BreakerKey&, const std::string& data, WallTime) {
    return ParseBreaker(data);
  }
};

template <>
struct RecordKind<RunnerRun> {
  using Id = RunId;
  static constexpr const char* kName = "run of a runner";
  static std::optional<RunId> IdIn(std::string_view path) { return paths::ParseBelowRunners(path).run; }
  static Expected<RunnerRun> Parse(const RunId&, const std::string& data, WallTime) {
    return ParseRunnerRun(data);
  }
};

template <>
struct RecordKind<WorkflowJob> {
  using Id = HookedJobKey;
  static constexpr const char* kName = "job of a webhook";
  static std::optional<HookedJobKey> IdIn(std::string_view path) {
    return paths::ParseBelowRunners(path).job;
  }
  static Expected<WorkflowJob> Parse(const HookedJobKey&, const std::string& data, WallTime) {
    return ParseWorkflowJob(data);
  }
};

template <>
struct RecordKind<RunnerSetRecord> {
  using Id = RunnerSetKey;
  static constexpr const char* kName = "set of runners";
  static std::optional<RunnerSetKey> IdIn(std::string_view path) {
    return paths::ParseBelowRunners(path).set;
  }
  static Expected<RunnerSetRecord> Parse(const RunnerSetKey&, const std::string& data, WallTime) {
    return ParseRunnerSetRecord(data);
  }
};

template <>
struct RecordKind<Component> {
  using Id = std::string;  // the path below /nodepool/components, e.g. "pool/np010000000003"
  static constexpr const char* kName = "component";
  static constexpr std::string_view kRoot = paths::kComponents;
  static constexpr const char* kLogger = "nodepool.ComponentRegistry";
  static std::optional<std::string> IdIn(std::string_view path);
  static Expected<Component> Parse(const std::string& id, const std::string& data, WallTime);
};

// The record in a znode. The error, kInvalid, names the record and the fault: it cannot be parsed or has no
// data.
template <class Stored>
Expected<Stored> TryDecode(const typename RecordKind<Stored>::Id& id, const zk::NodeData& node,
                           WallTime now) {
  using Kind = RecordKind<Stored>;
  auto context = [&id] { return fmt::format("{} {}", Kind::kName, id); };
  if (node.data.empty()) return Unexpected(Verdict::kInvalid, context() + ": the record has no data");
  auto record = Kind::Parse(id, node.data, now);
  if (!record) return std::unexpected(record.error().In(context()));
  if constexpr (std::same_as<Stored, std::remove_cvref_t<decltype(*record)>>) {
    return record;
  } else {
    Stored stored;
    stored.id = id;
    stored.record = std::move(*record);
    stored.revision = RevisionOf(node.stat);
    return stored;
  }
}

// The same; throws the error.
template <class Stored>
Stored Decode(const typename RecordKind<Stored>::Id& id, const zk::NodeData& node, WallTime now) {
  Expected<Stored> stored = TryDecode<Stored>(id, node, now);
  if (!stored) throw std::move(stored).error();
  return std::move(*stored);
}

}  // namespace nodepool::store
