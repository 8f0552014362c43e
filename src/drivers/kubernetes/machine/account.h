#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/machine/create_machine.h"

namespace nodepool::drivers::kubernetes {

// From when to when a token that was asked for lasts.
struct TokenLife {
  WallTime begin;
  WallTime end;
};

// What gives access to a node's namespace. Secret.
struct NodeToken {
  std::string token;
  std::string ca_base64;  // the API server's authorities, PEM in base64; empty: not known
  std::optional<TokenLife> life = std::nullopt;  // none: it ends with the namespace
};

// Makes the account of the node's namespace, its rights, and the secret for its token. False: the cluster
// does not allow such a secret.
Task<bool> MakeAccount(Cloud& cloud, const NodePlan& plan);

// The account's token: that in its secret, once the cluster has filled it; if there is no secret, or the
// cluster does not fill it within ten seconds, one that the cluster is asked for, which ends after 30 days,
// or earlier (driver-kubernetes.md 5.3).
Task<NodeToken> TokenOfAccount(Cloud& cloud, const NodePlan& plan, bool has_secret);

// Asks the cluster for another token of the account of a node's namespace.
Task<NodeToken> RequestToken(Cloud& cloud, std::string name_space);

// The life of a node's token as its record keeps it: driver_data.
boost::json::value ToDriverData(const TokenLife& life);

// A token that was asked for is renewed in the second half of its life, and is no longer handed out in the
// last quarter. In openshiftpods that of a record is renewed when our own has become another one.
Task<driver::cloud::AccessState> StateOfAccess(Cloud& cloud, driver::cloud::NodeAccess access);

// The same access with a new token.
Task<driver::cloud::NodeAccess> RenewAccess(Cloud& cloud, driver::cloud::NodeAccess access);

}  // namespace nodepool::drivers::kubernetes
