#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "config/yaml/value.h"
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

// `path` with the home directory in place of "~".
std::string WithHome(const std::string& path, const process::Environment& environment);

// An entry of a kubeconfig: the mapping of a cluster, context or user, and the file that it is in.
class ConfigEntry {
 public:
  ConfigEntry(std::string path, config::Value value) : path_(std::move(path)), value_(std::move(value)) {}

  const std::string& path() const { return path_; }
  const config::Value& value() const { return value_; }
  std::string folder() const;
  ConfigEntry Sub(std::string_view key) const;
  bool Has(std::string_view key) const;

  // Empty when there is no such scalar.
  std::string Text(std::string_view key) const;
  bool Truth(std::string_view key) const;
  std::vector<std::string> Texts(std::string_view key) const;
  // A path relative to the file's folder, as an absolute one; empty: it is not set.
  std::string Path(std::string_view key) const;
  // What `<key>-data` holds in base64, else the content of the file that `key` names, which is added to
  // `files`; empty: neither is set. Error(kInvalid) names what cannot be read.
  std::string PemOrFile(const std::string& key, std::vector<std::string>& files) const;

 private:
  std::string path_;
  config::Value value_;
};

// The user of a kubeconfig; of several kinds of credentials the first of driver-kubernetes.md 3.2. Adds what
// it reads to `files`. Error(kInvalid) names the file.
User ReadUser(const ConfigEntry& entry, std::vector<std::string>& files);

// What a plugin has made. Secret.
struct PluginCredential {
  std::string token;  // or:
  std::string certificate_pem;
  std::string key_pem;
  std::optional<WallTime> expires;  // none: never
};

// The variable KUBERNETES_EXEC_INFO for the plugin.
std::string PluginInput(const ExecPlugin& plugin, const Connection& connection);

// Reads a plugin's output. Error(kRetry): it is no credential. Its message quotes nothing.
PluginCredential ReadPluginOutput(const ExecPlugin& plugin, const std::string& output);

// Runs the plugin, for at most a minute. Error: it cannot be run, fails, or makes no credential.
Task<PluginCredential> RunPlugin(process::Runner& runner, ExecPlugin plugin, const Connection& connection,
                                 process::Environment environment);

}  // namespace nodepool::drivers::kubernetes
