#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "async/loop.h"
#include "async/shield.h"
#include "base/random.h"
#include "store/records.h"
#include "zk/client.h"
#include "zk/election.h"
#include "zk/lock.h"

namespace nodepool::store {

class Store;
template <class Stored>
struct RecordKind;

// What an update decided about the newest version of a record.
enum class Change {
  kWrite,  // store the changed record
  kSkip,   // it no longer applies; leave the record as it is
};

// What became of a wish.
enum class Wished {
  kDone,
  kThere,     // there is one for the node already
  kOutdated,  // others wished something meanwhile: look and decide again
};

// A node whose lock this process holds, with the record as last read or written.
// Every write carries the expected version (D-05): when somebody wrote meanwhile
// the record is read again and the change applied to that, or skipped.
//
// Errors of all writes: kNotFound when the record is gone, kLostSession when the
// session of the lock is over (nothing was written then), else the client's.
// Writes are repeated through connection losses; one that had already been carried
// out is recognised.
class LockedNode {
 public:
  LockedNode() = default;  // holds nothing; only to be assigned to

  const NodeId& id() const { return node_.id; }
  const Node& record() const { return node_.record; }
  const Revision& revision() const { return node_.revision; }
  bool is_held() const;

  // Applies `change` to the newest version and writes it. False when it skipped.
  Task<bool> Update(std::function<Change(Node&)> change);

  // Gives the lock up. The object is not used afterwards.
  Task<> Unlock();

  // Removes the record with its lock directory: first state `deleted`, then all
  // znodes, in one transaction. Contenders that wait are removed as well
  // (coordination.md 11.9). Gone already counts as success.
  Task<> Remove();

 private:
  friend class Store;
  friend class LockedRequest;
  LockedNode(Store& store, StoredNode node, zk::HeldLock lock)
      : store_(&store), node_(std::move(node)), lock_(std::move(lock)) {}

  Store* store_ = nullptr;
  StoredNode node_;
  zk::HeldLock lock_;
};

// A request whose lock this process holds. Errors as LockedNode.
class LockedRequest {
 public:
  LockedRequest() = default;  // holds nothing; only to be assigned to

  const RequestId& id() const { return request_.id; }
  const NodeRequest& record() const { return request_.record; }
  bool is_held() const;

  Task<bool> Update(std::function<Change(NodeRequest&)> change);
  Task<> Unlock();

  // Applies `change`, writes and unlocks in one transaction; when the request is
  // gone only the lock is released and false returned.
  Task<bool> UpdateAndUnlock(std::function<Change(NodeRequest&)> change);

  // The end of a good request, in one transaction: unlocks every node of `nodes`,
  // writes the request, unlocks the request, in this order (coordination.md 11.3).
  // When the request is gone nothing is done and false returned.
  Task<bool> Fulfil(std::vector<LockedNode*> nodes, std::function<Change(NodeRequest&)> change);

 private:
  friend class Store;
  LockedRequest(Store& store, StoredRequest request, zk::HeldLock lock)
      : store_(&store), request_(std::move(request)), lock_(std::move(lock)) {}

  Store* store_ = nullptr;
  StoredRequest request_;
  zk::HeldLock lock_;
};

// Records in ZooKeeper, typed: the only place that knows paths. Of its own
// it remembers only what it made last, to find the result of a creation whose answer was lost.
class Store {
 public:
  Store(Loop& loop, zk::Client& client, Random& random)
      : loop_(loop), client_(client), random_(random), locker_(loop, client, random) {}

  zk::Client& client() { return client_; }

  // --- Requests -----------------------------------------------------------
  // `precedence` is the text before the dash, e.g. "200". Unset event ids are filled
  // with 32 random hex digits.
  Task<RequestId> CreateRequest(std::string precedence, NodeRequest request, bool is_ephemeral);
  // nullopt: gone. Error(kInvalid): cannot be parsed.
  Task<std::optional<StoredRequest>> ReadRequest(RequestId id);
  Task<std::vector<RequestId>> ListRequests();
  Task<> DeleteRequest(RequestId id);

  // Locks without waiting, re-reads, applies `change` (e.g. state pending) and writes.
  // nullopt: locked by another, gone, or `change` skipped; nothing is left behind.
  // `seen`, the cached version, makes the usual case a single transaction.
  Task<std::optional<LockedRequest>> AcceptRequest(StoredRequest seen,
                                                   std::function<Change(NodeRequest&)> change);
  // Locks without waiting and re-reads. nullopt: locked by another, or gone.
  Task<std::optional<LockedRequest>> TryLockRequest(RequestId id);

  // Removes the lock directory of a vanished request if nobody contends (D-06); whether
  // it is gone.
  Task<bool> RemoveRequestLock(RequestId id);

  // --- Nodes --------------------------------------------------------------
  // Creates the record as it is (state init, created_time set), then locks it and
  // applies `change` (state building …) in one transaction. A crash in between
  // leaves an unlocked init node that the launcher's cleaner removes (D-34).
  Task<LockedNode> CreateLockedNode(Node node, std::function<Change(Node&)> change);
  // Creates a record without locking it (static nodes).
  Task<NodeId> CreateNode(Node node);
  Task<std::optional<StoredNode>> ReadNode(NodeId id);
  Task<std::vector<NodeId>> ListNodes();
  // Locks without waiting and re-reads. nullopt: locked by another, or gone. A
  // record without data or one that cannot be parsed: Error(kInvalid), unlocked.
  Task<std::optional<LockedNode>> TryLockNode(NodeId id, std::string identifier = "");
  // The same, waiting until `deadline`; nullopt when it passes. kNotFound: gone.
  Task<std::optional<LockedNode>> LockNode(NodeId id, SteadyTime deadline, std::string identifier = "");
  // Names in the node's lock directory; empty when there is none. Writes nothing.
  Task<std::vector<std::string>> NodeContenders(NodeId id);
  // Removes a znode without data, with all below it; does nothing if it has data, or
  // somebody is busy there: false.
  Task<bool> RemoveEmptyNode(NodeId id);
  // Writes without a lock, e.g. deallocating a fulfilled min-ready node. False:
  // gone or skipped.
  Task<bool> UpdateUnlockedNode(NodeId id, std::function<Change(Node&)> change);

  // --- Nodes of an owner that outlives its session ------------------------
  // A lock that stays, with the owner's name in it, keeps everybody else from a node
  // (drivers.md 8.2).

  // Who owns the node: what the first contender for its lock tells, often nothing.
  // nullopt: nobody.
  Task<std::optional<std::string>> NodeOwner(NodeId id);
  // Locks the node for `owner`, applies `change` and deletes the request that it was
  // delivered for, in one transaction. False: the node or the request is gone, somebody
  // else has the lock, or `change` skipped. Done already is success.
  Task<bool> ClaimNode(NodeId id, std::string owner, std::function<Change(Node&)> change, RequestId request);
  // Applies `change` and gives the lock up, in one transaction. False: the node is gone,
  // not this owner's, or `change` skipped.
  Task<bool> ReleaseNode(NodeId id, std::string owner, std::function<Change(Node&)> change);

  // --- Images -------------------------------------------------------------
  // Locks are taken without waiting; nullopt: held by another, or there is no such
  // record. Given up by Unlock(), best by Holding().

  // Of whoever builds the image. Makes the image's znodes.
  Task<std::optional<zk::HeldLock>> TryLockImage(ImageName image);
  // Of whoever marks a build for deletion.
  Task<std::optional<zk::HeldLock>> TryLockBuild(BuildKey build);
  // Of whoever uploads the build to the provider. Makes the directory of the uploads.
  Task<std::optional<zk::HeldLock>> TryLockUploads(BuildKey build, ProviderName provider);
  // Of whoever marks or removes an upload.
  Task<std::optional<zk::HeldLock>> TryLockUpload(UploadKey upload);
  // Awaits `work`, which has the lock, then gives the lock up.
  template <class T>
  Task<T> Holding(zk::HeldLock lock, Task<T> work);

  // nullopt: gone. Error(kInvalid): cannot be parsed or has no data.
  Task<std::optional<StoredBuild>> ReadBuild(BuildKey build);
  Task<std::optional<StoredUpload>> ReadUpload(UploadKey upload);
  // Whether the znode is there, whatever it says.
  Task<bool> BuildExists(BuildKey build);
  // Everything there is, directly read; what cannot be parsed is left out.
  Task<std::vector<StoredBuild>> ListBuilds(ImageName image);
  Task<std::vector<StoredUpload>> ListUploadsOf(BuildKey build, ProviderName provider);
  Task<std::vector<ImageName>> ListImages();

  // Writes under a lock; errors as LockedNode. Creating takes a fresh id, or the next
  // number.
  Task<StoredBuild> CreateBuild(ImageName image, ImageBuild record, zk::HeldLock lock);
  Task<StoredUpload> CreateUpload(BuildKey build, ProviderName provider, ImageUpload record,
                                  zk::HeldLock lock);
  // Applies `change` to the newest version; false when it skipped.
  Task<bool> UpdateBuild(StoredBuild& build, zk::HeldLock lock, std::function<Change(ImageBuild&)> change);
  Task<bool> UpdateUpload(StoredUpload& upload, zk::HeldLock lock,
                          std::function<Change(ImageUpload&)> change);
  // The same without a lock, as the command line does (builder.md 16).
  Task<bool> UpdateUnlockedBuild(StoredBuild& build, std::function<Change(ImageBuild&)> change);
  Task<bool> UpdateUnlockedUpload(StoredUpload& upload, std::function<Change(ImageUpload&)> change);

  // Removes an upload's record with everything below it; gone already is success.
  Task<> RemoveUpload(UploadKey upload);
  // Removes a build's record with everything below it unless it has uploads: false. Those
  // without data do not count.
  Task<bool> RemoveBuild(BuildKey build);
  // Removes what is left of an image without builds; false when it has some, or
  // somebody is busy with it (D-44).
  Task<bool> RemoveImage(ImageName image);

  // What the operator wants (builder.md 14). All may be repeated.
  Task<> RequestBuild(ImageName image);
  // The request for a build as it stands, directly read; nullopt: there is none.
  Task<std::optional<Revision>> ReadBuildRequest(ImageName image);
  // Removes the request that was `seen`. One that was made or written since stays.
  Task<> RemoveBuildRequest(ImageName image, Revision seen);
  // Error(kNotFound): there is no such image.
  Task<> PauseImage(ImageName image);
  Task<> UnpauseImage(ImageName image);

  // Every pause, build and upload as it stands, by path; and such data put back. Later
  // uploads get greater numbers than those in it, the same that they get from others'
  // imports (coordination.md 14.4). Error(kInvalid): a path that is none of these.
  Task<std::map<std::string, std::string>> ExportImages();
  Task<> ImportImages(std::map<std::string, std::string> records);

  // The path of an upload record, as a node's image_id (launcher.md 17).
  static std::string UploadPath(const UploadKey& key);

  // --- Jobs (operations.md 13.5, D-67) -------------------------------------
  Task<JobId> CreateJobRule(JobRule rule);
  // False: there is none of this id, which may be any text.
  Task<bool> DeleteJobRule(JobId id);
  // Notes that the node is to be held. Whoever decides so has looked at all wishes and says
  // which version of them he saw (JobCache::wishes_version).
  Task<Wished> AddHoldWish(NodeId node, HoldWish wish, std::int32_t seen_version);
  // nullopt: there is none that can be read. Whoever has the node's lock sees every wish that was
  // there before.
  Task<std::optional<HoldWish>> ReadHoldWish(NodeId node);
  // Gone already counts as success.
  Task<> RemoveHoldWish(NodeId node);
  // Of the process that handles what job events tell; `identifier` as StatsElection.
  zk::Election JobsElection(std::string identifier);

  // --- Components ---------------------------------------------------------
  // Everyone of the kind who is registered and readable, directly read.
  Task<std::vector<Component>> ListComponents(ComponentKind kind);

  // --- Locks by name ------------------------------------------------------
  // Non-blocking lock under our own directory /nodepool/locks/<name>, e.g. for the
  // registration of a static slot (D-85). nullopt: held by another.
  Task<std::optional<zk::HeldLock>> TryLockNamed(std::string name);
  Task<> Unlock(zk::HeldLock lock);

  // The election of the process that reports the cluster's statistics, at
  // /nodepool/elections/stats (launcher.md 27.3); `identifier` is "<hostname>-<pid>".
  zk::Election StatsElection(std::string identifier);

 private:
  friend class LockedNode;
  friend class LockedRequest;

  bool IsHeld(const zk::HeldLock& lock) const { return locker_.IsHeld(lock); }
  // Operations of the client, repeated through connection losses.
  Task<zk::Result<zk::NodeData>> Get(std::string path);
  Task<std::vector<std::string>> Children(std::string path);  // none when it is missing
  Task<> Delete(std::string path);                            // a missing one counts as deleted
  Task<> Ensure(std::string path);
  // Makes a sequential znode and its missing parents. One that an attempt with a
  // lost answer made is found by its data.
  Task<std::string> CreateSequential(std::string path, std::string data, zk::CreateMode mode);
  Task<std::optional<std::string>> FindNewest(std::string path, std::string data);
  std::string Made(std::string path);
  // Reads a record whose lock was just taken. Releases the lock when the record is
  // gone (nullopt) or on any error. The caller awaits StayAwake() before: told
  // to stop in the instant of locking it must still get here.
  template <class Stored, class Id>
  Task<std::optional<Stored>> ReadLocked(Id id, zk::HeldLock lock);
  template <class Stored>
  Task<std::optional<Stored>> Read(typename RecordKind<Stored>::Id id);
  template <class Stored, class Record>
  Task<bool> Write(Stored& stored, std::optional<zk::HeldLock> lock, std::function<Change(Record&)> change);
  // Makes so many numbered children; those that are none of `wanted` go again.
  Task<> MakeNumbers(std::string directory, std::int64_t count,
                     const std::map<std::string, std::string>& wanted);
  // Locks below a record; none when the record is gone.
  Task<std::optional<zk::HeldLock>> TryLockBelow(std::string directory);
  Task<> Make(std::string path);  // an empty znode; kNotFound when its parent is missing
  // Removes it with all below it.
  Task<> RemoveAll(std::string path);
  // Removes a node with what is below it, in one transaction. False: try again, with `below` and
  // the version as they are now.
  Task<bool> TryRemove(StoredNode& node, zk::HeldLock lock, std::vector<std::string>& below);
  Task<bool> TryRemoveEmpty(NodeId id);

  struct Contender {
    std::string path;
    std::string identifier;
  };
  static constexpr int kOwnershipAttempts = 5;  // while others write
  Task<std::optional<Contender>> FirstContender(NodeId id);
  Task<bool> TryClaim(NodeId id, std::string owner, std::function<Change(Node&)> change, RequestId request);
  Task<bool> TryRelease(NodeId id, std::string owner, std::function<Change(Node&)> change,
                        std::string& given_up);

  Loop& loop_;
  zk::Client& client_;
  Random& random_;
  zk::Locker locker_;
  std::deque<std::string> made_;  // the last sequential znodes made here
};

template <class T>
Task<T> Store::Holding(zk::HeldLock lock, Task<T> work) {
  std::exception_ptr fault;
  std::optional<std::conditional_t<std::is_void_v<T>, bool, T>> result;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
    } else {
      result.emplace(co_await std::move(work));
    }
  } catch (...) {
    fault = std::current_exception();
  }
  co_await StayAwake();
  Task<> unlock = Unlock(std::move(lock));
  co_await Shielded(std::move(unlock));
  if (fault) std::rethrow_exception(fault);
  if constexpr (!std::is_void_v<T>) co_return std::move(*result);
}

}  // namespace nodepool::store
