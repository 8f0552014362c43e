#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

// A program that makes credentials (driver-kubernetes.md 3.3).
struct ExecPlugin {
  std::string api_version;
  std::vector<std::string> argv;
  process::Environment environment;  // beside the process's own
  bool wants_cluster = false;
  std::string folder;  // of the kubeconfig: where it runs
};

// How to prove who we are. Secret. Empty members: not configured.
struct User {
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  std::string certificate_pem;
  WallTime certificate_ends = WallTime::max();
  std::string key_pem;
  std::optional<ExecPlugin> exec;
  net::HttpHeaders impersonation;  // headers that say as whom we act
};

// An API server, and the account on it, as a kubeconfig or the pod we run in describes them; all files that
// it names have been read, but for the token's.
struct Connection {
  std::string server;  // base URL, without a slash at its end
  bool verifies_tls = true;
  std::string ca_pem;       // empty: the system's authorities
  std::string server_name;  // in the certificate; empty: the URL's host
  std::string proxy;
  User user;
  // What it was read from: when one of these changes, it is to be read again.
  std::vector<std::string> files;
};

// Where configuration is searched for.
struct Places {
  process::Environment environment = process::OwnEnvironment();
  // Where a pod finds its account.
  std::string pod_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// Reads the connection of a context (none: the current one) from the files of KUBECONFIG, or, when there is
// none at all, that of the pod that we run in, whatever the context (driver-kubernetes.md 3). Blocks.
// Error(kInvalid) names the file or the context.
Connection ReadConnection(const Places& places, const std::optional<std::string>& context);

}  // namespace nodepool::drivers::kubernetes
