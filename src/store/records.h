#pragma once

#include <boost/container/flat_set.hpp>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "model/breaker.h"
#include "model/component.h"
#include "model/image.h"
#include "model/job.h"
#include "model/node.h"
#include "model/node_request.h"
#include "model/provider_pause.h"
#include "model/runner.h"

namespace nodepool::store {

// The decision of an update about the newest version of a record.
enum class Change {
  kWrite,  // store the changed record
  kSkip,   // it no longer applies; leave the record unchanged
};

// What the store knows about a stored record besides its content.
struct Revision {
  std::int32_t version = -1;         // changes since creation; the expected version of a write
  std::int64_t mzxid = 0;            // orders changes over the whole tree
  WallTime created{};                // by the server's clock
  WallTime modified{};               // by the server's clock
  std::int64_t ephemeral_owner = 0;  // the session that it is deleted with; 0: persistent
  bool is_ephemeral() const { return ephemeral_owner != 0; }
};

// Names in a lock directory.
using Contenders = boost::container::flat_set<std::string>;
// Ids of a request's nodes; adding one is linear in their number.
using FewNodes = boost::container::flat_set<NodeId>;

struct StoredNode {
  NodeId id;
  Node record;
  Revision revision;
  // Names in the node's lock directory, as last seen. Not empty: probably locked.
  Contenders contenders;
  bool is_locked() const { return !contenders.empty(); }
};

struct StoredRequest {
  RequestId id;
  NodeRequest record;
  Revision revision;
};

// An image, a build and an upload are found by these keys.
struct BuildKey {
  ImageName image;
  BuildId build;
  std::string str() const { return image.value + "-" + build.value; }  // as operators name a build
  std::string log_name() const { return str() + ".log"; }              // of its log in build-log-dir
  auto operator<=>(const BuildKey&) const = default;
};
struct UploadKey {
  BuildKey build;
  ProviderName provider;
  UploadId upload;
  std::string str() const { return build.str() + " in " + provider.value + ": " + upload.value; }
  auto operator<=>(const UploadKey&) const = default;
};
struct StoredBuild {
  BuildKey id;
  ImageBuild record;
  Revision revision;
};
struct StoredUpload {
  UploadKey id;
  ImageUpload record;
  Revision revision;
};

struct StoredJobRule {
  JobId id;
  JobRule record;
  Revision revision;
};
struct StoredHoldNote {
  NodeId id;  // of the node that is to be held
  HoldNote record;
  Revision revision;
};

struct StoredLease {
  LeaseId id;
  Lease record;
  Revision revision;
};

// A set of runners is found by its service and its own name, as configured.
struct RunnerSetKey {
  std::string service;
  std::string set;
  std::string str() const { return service + "/" + set; }
  auto operator<=>(const RunnerSetKey&) const = default;
};

// A job that webhooks of a service have named; the service's number of it.
struct HookedJobKey {
  std::string service;
  std::int64_t job = 0;
  std::string str() const { return service + "/" + std::to_string(job); }
  auto operator<=>(const HookedJobKey&) const = default;
};

}  // namespace nodepool::store

template <class Key>
  requires std::same_as<Key, nodepool::store::BuildKey> || std::same_as<Key, nodepool::store::UploadKey> ||
           std::same_as<Key, nodepool::store::RunnerSetKey> ||
           std::same_as<Key, nodepool::store::HookedJobKey>
struct fmt::formatter<Key> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const Key& key, Context& context) const {
    return fmt::formatter<std::string>::format(key.str(), context);
  }
};

template <>
struct fmt::formatter<nodepool::BreakerKey> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const nodepool::BreakerKey& key, Context& context) const {
    return fmt::formatter<std::string>::format(ToString(key), context);
  }
};
