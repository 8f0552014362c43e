#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "config/schema/section.h"

namespace nodepool::config {

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

}  // namespace nodepool::config
