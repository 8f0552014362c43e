#pragma once

#include <string>

#include "base/error.h"
#include "store/paths.h"
#include "store/records.h"
#include "zk/types.h"

namespace nodepool::store {

Revision RevisionOf(const zk::Stat& stat);

// The differences between the kinds of records that are written under locks.
template <class Stored>
struct RecordKind;

template <>
struct RecordKind<StoredNode> {
  using Id = NodeId;
  using Record = Node;
  static constexpr const char* kName = "node";
  static std::string Path(const NodeId& id) { return paths::Node(id); }
  static std::string LockPath(const NodeId& id) { return paths::NodeLock(id); }
  static Expected<Node> Parse(const std::string& data, WallTime now) { return ParseNode(data, now); }
};

template <>
struct RecordKind<StoredRequest> {
  using Id = RequestId;
  using Record = NodeRequest;
  static constexpr const char* kName = "request";
  static std::string Path(const RequestId& id) { return paths::Request(id); }
  static std::string LockPath(const RequestId& id) { return paths::RequestLock(id); }
  static Expected<NodeRequest> Parse(const std::string& data, WallTime now) {
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
  static Expected<ImageBuild> Parse(const std::string& data, WallTime now) {
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
  static Expected<ImageUpload> Parse(const std::string& data, WallTime now) {
    return ParseImageUpload(data, now);
  }
};

template <>
struct RecordKind<StoredJobRule> {
  using Id = JobId;
  static constexpr const char* kName = "rule about jobs";
  static Expected<JobRule> Parse(const std::string& data, WallTime) { return ParseJobRule(data); }
};

template <>
struct RecordKind<StoredHoldNote> {
  using Id = NodeId;
  static constexpr const char* kName = "hold note";
  static Expected<HoldNote> Parse(const std::string& data, WallTime) { return ParseHoldNote(data); }
};

template <>
struct RecordKind<StoredLease> {
  using Id = LeaseId;
  using Record = Lease;
  static constexpr const char* kName = "lease";
  static std::string Path(const LeaseId& id) { return paths::Lease(id); }
  static Expected<Lease> Parse(const std::string& data, WallTime) { return ParseLease(data); }
};

// The record in a znode. Throws Error(kInvalid), which names the record and the
// fault, when it cannot be parsed or has no data.
template <class Stored>
Stored Decode(const typename RecordKind<Stored>::Id& id, const zk::NodeData& node, WallTime now) {
  using Kind = RecordKind<Stored>;
  std::string context = std::string(Kind::kName) + " " + id.str();
  if (node.data.empty()) throw Error(Verdict::kInvalid, context + ": the record has no data");
  auto record = Kind::Parse(node.data, now);
  if (!record) throw record.error().In(context);
  Stored stored;
  stored.id = id;
  stored.record = std::move(*record);
  stored.revision = RevisionOf(node.stat);
  return stored;
}

}  // namespace nodepool::store
