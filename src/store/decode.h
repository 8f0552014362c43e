#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "store/paths.h"
#include "store/records.h"
#include "zk/types.h"

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
