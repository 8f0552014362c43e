#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "config/schema/section.h"
#include "config/yaml/value.h"
#include "model/node.h"

namespace nodepool::config {

// What a token's bearer may do over HTTP, besides reading (http-requests.md 2.1).
enum class Scope { kRead, kRequest, kOperate };
std::string_view ToString(Scope scope);

struct WebToken {
  std::string name;
  std::string hash;  // of its secret (base/crypto.h)
  std::set<Scope> scopes;
  std::optional<std::int64_t> max_nodes;
  std::vector<std::string> labels;  // patterns; empty: all labels
  std::optional<std::int64_t> priority;
  std::optional<std::string> tenant;

  bool may(Scope scope) const { return scopes.contains(scope); }
};

// The setting `webapp-tokens` of the secure file.
Setting WebTokensSetting();
// Error(kInvalid), with the place, for a token that cannot be used; it never quotes a hash.
std::vector<WebToken> ReadWebTokens(const Section& root);

// Whether the text can be a token's name.
bool IsTokenName(std::string_view name);
// Whether the text matches the pattern, in which `*` is any text.
bool MatchesPattern(std::string_view text, std::string_view pattern);

// A set of runners: jobs that ask for one of its labels run on nodes with its node label (runners.md 6).
struct RunnerSet {
  std::string name;
  std::vector<std::string> labels;  // what `runs-on:` says; never empty
  LabelName node_label;
  std::int64_t max_runners = 10;
  std::optional<std::int64_t> max_per_repo;
  std::int64_t idle = 0;  // registered runners that wait for jobs
  std::int64_t priority = 200;
  std::optional<std::string> tenant;
  std::string user;  // who logs in to the node; empty: the node's user
  std::string folder = "actions-runner";
  Duration start_timeout = std::chrono::seconds(120);   // until the runner is online
  Duration pickup_timeout = std::chrono::seconds(300);  // online without a job
  Duration job_timeout = std::chrono::hours(6);
  bool enforces_job_timeout = false;
  std::optional<Duration> keep_failed;  // how long the node of a failed job is held

  bool operator==(const RunnerSet&) const = default;
};

// How we prove to a service who we are. All of it is secret; one of the two kinds.
struct RunnerCredentials {
  std::string app_client_id;
  std::string app_installation_id;
  std::string app_private_key;  // the path of a PEM file, or its text
  std::string token;
  std::vector<std::string> webhook_secrets;  // a delivery is signed with one of them

  bool is_app() const { return !app_client_id.empty(); }
  bool empty() const { return app_client_id.empty() && token.empty(); }
  bool operator==(const RunnerCredentials&) const = default;
};

enum class RunnerServiceKind { kGithub, kForgejo };
// How jobs are learnt of. kWebhook: by deliveries, and lists for what is lost of them.
enum class RunnerMode { kScaleSet, kWebhook, kPoll };

// A service that has jobs, with the sets that run them: an entry of `runners`, and of `runner-services` in
// the secure file.
struct RunnerService {
  std::string name;
  RunnerServiceKind kind = RunnerServiceKind::kGithub;
  RunnerMode mode = RunnerMode::kScaleSet;
  std::string url;    // of an organization, a repository or an enterprise
  std::string group;  // runner group; empty: the default one
  std::string ca;     // path of a PEM file; empty: the system's authorities
  std::string proxy;  // may hold a password; empty: the environment's
  bool allows_public = false;
  bool allows_forks = false;              // runs of pull requests from forks; not with kScaleSet
  std::vector<std::string> repositories;  // "owner/name", not with kScaleSet; empty: all of the installation
  std::string ssh_key;                    // path of a private key; empty: what ssh finds
  std::optional<std::int64_t> max_runners;
  std::vector<RunnerSet> sets;
  RunnerCredentials credentials;

  // "owner/name" where `url` is a repository's, else empty.
  std::string Repository() const;
  // Whether its jobs may be of the repository, "owner/name", without regard to case.
  bool Covers(const std::string& repository) const;
  bool operator==(const RunnerService&) const = default;
};

// The setting `runners` of the main file, and `runner-services` of the secure one.
Setting RunnersSetting();
Setting RunnerSecretsSetting();

// By the name of the service. Error(kInvalid), with the place; it quotes no secret.
std::map<std::string, RunnerCredentials> ReadRunnerSecrets(const Section& secure_root);
// Error(kInvalid), with the place, for a service or set that cannot be used. One without secrets has empty
// credentials: only nodepool-runners needs them.
std::vector<RunnerService> ReadRunners(const Section& root,
                                       const std::map<std::string, RunnerCredentials>& secrets);

struct ZooKeeperServer {
  std::string host;  // without brackets
  int port = 0;      // default applied: 2281 with TLS, 2181 without (D-02)
  bool operator==(const ZooKeeperServer&) const = default;
};

struct ZooKeeperTls {
  std::string cert;  // paths of PEM files
  std::string key;
  std::string ca;
  bool operator==(const ZooKeeperTls&) const = default;
};

// The ZooKeeper server within `nodepool standalone`.
struct EmbeddedZooKeeper {
  std::string state_dir = "/var/lib/nodepool";
  int port = 2181;  // plain TCP, on the loopback interface only
  struct Tls {
    std::string listen_address = "0.0.0.0";
    int port = 2281;
    ZooKeeperTls files;  // the server's; clients are signed by `ca`
    bool operator==(const Tls&) const = default;
  };
  std::optional<Tls> tls;
  bool operator==(const EmbeddedZooKeeper&) const = default;
};

struct ZooKeeperSettings {
  std::vector<ZooKeeperServer> servers;
  std::string chroot;  // "" or "/x"; one for all servers (D-01)
  // The path of the Python implementation's records, when it is not `chroot`: that program takes
  // everything after the first slash in the text of all servers for the chroot. Otherwise empty.
  std::string python_chroot;
  Duration timeout = std::chrono::seconds(10);
  std::optional<ZooKeeperTls> tls;
  bool insecure = false;       // zookeeper-insecure: plain TCP to other hosts allowed (D-03)
  EmbeddedZooKeeper embedded;  // used where `servers` is empty
  // Has what clients of the embedded server may have to show; empty: `servers` are others.
  std::string client_secret_file;
};

struct WebAppSettings {
  // Paths of PEM files; of the server `cert` and `key`, of the commands that ask it `ca`.
  struct Tls {
    std::string cert;
    std::string key;
    std::string ca;  // empty: the system's authorities
    bool operator==(const Tls&) const = default;
  };

  int port = 8005;
  std::string listen_address = "0.0.0.0";
  bool read_needs_token = false;  // from other hosts
  std::optional<Tls> tls;         // none: plain HTTP
};

struct Label {
  LabelName name;
  int min_ready = 0;  // ≤ 0: none (D-21)
  std::optional<Duration> max_ready_age;
};

// A disk image with everything inherited from its parents (configuration.md 7).
// How an upload is validated before it is used (builder.md 10.8).
struct ImageValidation {
  std::optional<std::string>
      command;  // on the builder's host, once a machine has booted; none: that is enough
  Duration timeout = std::chrono::seconds(3600);  // for all of it, also while capacity is waited for
};

struct DiskImage {
  ImageName name;
  int position = 0;  // in the file's list
  std::vector<std::string> elements;
  std::map<std::string, std::string> env_vars;  // may hold secrets: never logged
  std::string release;
  std::vector<std::string> formats;  // sorted, unique; providers add theirs
  std::vector<std::string> keep_formats;
  bool delete_after_upload = false;
  Duration rebuild_age = std::chrono::hours(24);
  Duration build_timeout = std::chrono::hours(8);
  bool is_paused = false;
  std::string dib_cmd = "disk-image-create";
  std::string username = "zuul";
  std::string python_path = "auto";
  std::optional<std::string> shell_type;
  std::map<std::string, std::string> metadata;
  std::optional<ImageValidation> validation;  // none: uploads are used as they are
};

// An entry of `providers` before its driver has read it.
struct ProviderSection {
  ProviderName name;
  std::string driver;  // after the rules of drivers.md 1.1
  Value source;        // the whole mapping
};

// A nodepool.yaml with its secure file, checked and resolved; immutable once loaded.
struct Config {
  std::string path;
  std::optional<std::string> elements_dir;
  std::optional<std::string> images_dir;
  std::string build_log_dir = "/var/log/nodepool/builds";
  int build_log_retention = 7;
  // Concurrent builds in one builder; overrides its command line.
  std::optional<int> build_workers;
  std::optional<int> upload_workers;
  std::optional<Duration> max_hold_age;
  Duration graceful_stop = std::chrono::seconds(30);  // of a launcher (D-24)
  WebAppSettings webapp;
  ZooKeeperSettings zookeeper;
  std::map<LabelName, Label> labels;
  std::map<ImageName, DiskImage> diskimages;
  std::vector<ProviderSection> providers;          // in file order
  std::map<std::string, Resources> tenant_limits;  // by tenant; absent resource = unlimited
  std::vector<std::string> zmq_publishers;
  std::vector<WebToken> web_tokens;
  std::vector<RunnerService> runners;  // in file order

  // Faults that operators should know of, though the file is accepted: unknown keys (D-50),
  // unchecked sections (D-54). Each names its place.
  std::vector<std::string> warnings;
};

}  // namespace nodepool::config
