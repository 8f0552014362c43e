#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"
#include "config/schema/bindings.h"

namespace nodepool::config {

namespace {

constexpr std::size_t kMaxName = 64;
constexpr double kMaxPriority = 999;

constexpr std::array<std::pair<Scope, std::string_view>, 3> kScopes = {
    {{Scope::kRead, "read"}, {Scope::kRequest, "request"}, {Scope::kOperate, "operate"}}};

void ReadScopes(const Section& section, const std::string& key, WebToken& token) {
  token.scopes = {Scope::kRead};
  for (const std::string& word : section.TextList(key)) {
    auto scope = std::ranges::find(kScopes, word, [](const auto& each) { return each.second; });
    if (scope == kScopes.end())
      throw section.Fail(key, fmt::format("expected read, request and operate, found {}", Excerpt(word)));
    token.scopes.insert(scope->first);
  }
}

const Bindings<WebToken>& WebTokenSettings() {
  static const Bindings<WebToken> settings = {
      {Setting("name", "Its name: letters, digits, underscores and dashes.").Required(), &WebToken::name},
      {Setting("hash", "Hash of its secret, as `nodepool token` prints it.").Required().Secret(),
       &WebToken::hash},
      {Setting(
           "scopes", Schema::List(Schema::String()),
           "What it allows besides reading: `request`: leases of its own; `operate`: those of all, and to "
           "change nodes, images and providers."),
       ReadScopes},
      {Setting("max-nodes", Schema::Int().Between(0, 1'000'000),
               "Nodes that its leases may have at a time, together with those that it holds.")
           .Unit("nodes"),
       &WebToken::max_nodes},
      {Setting("labels", "Labels that it may ask for, `*` for any text; without it all."), &WebToken::labels},
      {Setting("priority", Schema::Int().Between(0, kMaxPriority),
               "Least number that it may ask for as priority, and its default."),
       &WebToken::priority},
      {Setting("tenant", "Tenant of all its requests."), &WebToken::tenant},
  };
  return settings;
}

WebToken ReadWebToken(const Section& section) {
  WebToken token;
  WebTokenSettings().Read(section, token);
  if (!IsTokenName(token.name))
    throw section.Fail("name", "expected 1 to 64 letters, digits, underscores and dashes");
  if (!IsSecretHash(token.hash)) throw section.Fail("hash", "expected the hash that `nodepool token` prints");
  return token;
}

}  // namespace

std::string_view ToString(Scope scope) {
  return std::ranges::find(kScopes, scope, [](const auto& each) { return each.first; })->second;
}

Setting WebTokensSetting() {
  return Setting("webapp-tokens", Schema::List(WebTokenSettings().ToSchema()),
                 "Who may change something through the web server.");
}

std::vector<WebToken> ReadWebTokens(const Section& root) {
  std::vector<WebToken> tokens;
  for (const Section& section : root.Sections("webapp-tokens")) {
    WebToken token = ReadWebToken(section);
    if (std::ranges::find(tokens, token.name, &WebToken::name) != tokens.end())
      throw section.Fail("name", fmt::format("the token {} is defined twice", token.name));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

bool IsTokenName(std::string_view name) {
  auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, is_good);
}

// The parts between the stars, each found as early as possible.
bool MatchesPattern(std::string_view text, std::string_view pattern) {
  std::size_t star = pattern.find('*');
  if (star == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (star = pattern.find('*'); star != pattern.npos; star = pattern.find('*')) {
    std::size_t found = text.find(pattern.substr(0, star));
    if (found == text.npos) return false;
    text.remove_prefix(found + star);
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

namespace {

constexpr std::size_t kMaxRunnerName = 64;
constexpr std::size_t kMaxRunnerLabels = 100;
constexpr double kMaxRunners = 10'000;
constexpr double kMaxSeconds = 5 * 86'400;
constexpr double kMaxRunnerPriority = 999;
constexpr std::string_view kPemBegin = "-----BEGIN";

const Bindings<RunnerSet>& SetSettings() {
  static const Schema count = Schema::Int().Between(0, kMaxRunners);
  static const Schema time = Schema::Int().Between(1, kMaxSeconds);
  static const Bindings<RunnerSet> settings = {
      {Setting("name", "Its name in the service: letters, digits, dots, underscores and dashes.").Required(),
       &RunnerSet::name},
      {Setting("labels", "What jobs ask for with `runs-on`; without it the name."), &RunnerSet::labels},
      {Setting("node-label", "Label of the nodes that its jobs run on.").Required(), &RunnerSet::node_label},
      {Setting("max-runners", count, "Runners at a time.").Unit("runners"), &RunnerSet::max_runners},
      {Setting("max-per-repo", Schema::Int().Between(1, kMaxRunners),
               "Jobs of one repository at a time, where the service announces jobs before it assigns them.")
           .Unit("jobs"),
       &RunnerSet::max_per_repo},
      {Setting("idle", count, "Registered runners that wait for jobs.").Unit("runners"), &RunnerSet::idle},
      {Setting("priority", Schema::Int().Between(0, kMaxRunnerPriority),
               "Of its node requests; the lowest is served first."),
       &RunnerSet::priority},
      {Setting("tenant", "Tenant of its node requests."), &RunnerSet::tenant},
      {Setting("user", "Who logs in to the nodes and runs jobs; without it the node's user."),
       &RunnerSet::user},
      {Setting("folder", "Folder of the runner's program on the node, below the user's home."),
       &RunnerSet::folder},
      {Setting("start-timeout", time, "Time for the runner to be online once its node is there."),
       &RunnerSet::start_timeout},
      {Setting("pickup-timeout", time, "Time that a runner is online without a job."),
       &RunnerSet::pickup_timeout},
      {Setting("job-timeout", time, "A job that runs longer is warned of."), &RunnerSet::job_timeout},
      {Setting("enforce-job-timeout", "End such a job."), &RunnerSet::enforces_job_timeout},
      {Setting("keep-failed", time,
               "Time for which the node of a job that failed is held, one at a time; without it none is. At "
               "github only."),
       &RunnerSet::keep_failed},
  };
  return settings;
}

const Words<RunnerMode>& Modes() {
  static const Words<RunnerMode> modes = {
      {"scale-set", RunnerMode::kScaleSet}, {"webhook", RunnerMode::kWebhook}, {"poll", RunnerMode::kPoll}};
  return modes;
}

// Read after the kind, which decides what it is without a setting.
void ReadMode(const Section& section, const std::string& key, RunnerService& service) {
  bool is_forgejo = service.kind == RunnerServiceKind::kForgejo;
  if (is_forgejo) service.mode = RunnerMode::kPoll;
  if (!section.IsGiven(key)) return;
  service.mode = ReadWord(section, key, Modes());
  if (is_forgejo && service.mode != RunnerMode::kPoll) throw section.Fail(key, "expected poll for forgejo");
}

const Bindings<RunnerService>& ServiceSettings() {
  using Service = RunnerService;
  static const Bindings<Service> settings = {
      {Setting("name", "Its name: letters, digits, dots, underscores and dashes.").Required(),
       &Service::name},
      {Setting("service", "Kind of the service."), &Service::kind,
       Words<RunnerServiceKind>{{"github", RunnerServiceKind::kGithub},
                                {"forgejo", RunnerServiceKind::kForgejo}}},
      {Setting("mode", Schema::Among({"scale-set", "webhook", "poll"}),
               "How jobs are learnt of; without it scale-set at github, poll at forgejo. With webhook GitHub "
               "sends events to `/api/v1/runners/hooks/NAME` of a launcher's web server."),
       ReadMode},
      {Setting("url", "Address of the organization, repository or enterprise whose jobs are run.").Required(),
       &Service::url},
      {Setting("group", "Runner group of the sets; without it the default group."), &Service::group},
      {Setting("ca", "PEM file of the authority that signed the service's certificate."), &Service::ca},
      {Setting("proxy", "Proxy for calls of the service, in place of the environment's.").Secret(),
       &Service::proxy},
      {Setting("allow-public", "Run jobs of public repositories, too."), &Service::allows_public},
      {Setting("allow-forks", "Run pull requests from forks, too; with mode webhook or poll."),
       &Service::allows_forks},
      {Setting(
           "repos",
           "Repositories, as OWNER/NAME, whose jobs are run with mode webhook or poll; without it all that "
           "the app is installed for."),
       &Service::repositories},
      {Setting("ssh-key", "Private key that the nodes accept; without it what ssh finds."),
       &Service::ssh_key},
      {Setting("max-runners", Schema::Int().Between(0, kMaxRunners), "Runners of all sets at a time.")
           .Unit("runners"),
       &Service::max_runners},
      Setting("sets", Schema::List(SetSettings().ToSchema()), "Its sets of runners.").Required(),
  };
  return settings;
}

constexpr std::size_t kLeastWebhookSecret = 8;
constexpr std::size_t kMostWebhookSecrets = 4;

void ReadWebhookSecrets(const Section& section, const std::string& key, RunnerCredentials& credentials) {
  if (!section.IsGiven(key)) return;
  credentials.webhook_secrets = section.TextList(key);
  auto is_short = [](const std::string& secret) { return secret.size() < kLeastWebhookSecret; };
  bool is_usable = !credentials.webhook_secrets.empty() &&
                   credentials.webhook_secrets.size() <= kMostWebhookSecrets &&
                   std::ranges::none_of(credentials.webhook_secrets, is_short);
  if (!is_usable) throw section.Fail(key, "expected 1 to 4 secrets of at least 8 characters");
}

const Bindings<RunnerCredentials>& CredentialSettings() {
  using Credentials = RunnerCredentials;
  static const Bindings<Credentials> settings = {
      Setting("name", Schema::String(), "Name of the service.").Required(),
      {Setting("app-client-id", "Client id of the GitHub App.").Secret(), &Credentials::app_client_id},
      {Setting("app-installation-id", Schema::OneOf({Schema::String(), Schema::Int()}), "Its installation.")
           .Secret(),
       &Credentials::app_installation_id},
      {Setting("app-private-key", "Its key: the path of a PEM file, or the PEM text.").Secret(),
       &Credentials::app_private_key},
      {Setting("token", "Personal access token, in place of an app.").Secret(), &Credentials::token},
      {Setting("webhook-secret", Schema::OneOf({Schema::String(), Schema::List(Schema::String())}),
               "Secret of the webhook, with mode webhook; or a list of them, while it is being replaced.")
           .Secret(),
       ReadWebhookSecrets},
  };
  return settings;
}

bool IsName(std::string_view name) {
  auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  bool is_path = name == "." || name == "..";
  return !name.empty() && name.size() <= kMaxRunnerName && !is_path && std::ranges::all_of(name, is_good);
}

void CheckName(const Section& section, const std::string& name) {
  if (!IsName(name))
    throw section.Fail("name", "expected 1 to 64 letters, digits, dots, underscores and dashes");
}

// Without a user, a query and more than two parts of a path; a slash at the end is dropped.
std::string CheckedUrl(const Section& section, std::string url) {
  constexpr std::string_view kScheme = "https://";
  while (url.ends_with('/')) url.pop_back();
  if (!url.starts_with(kScheme)) throw section.Fail("url", "expected an address that begins with https://");
  std::vector<std::string> parts = Split(std::string_view(url).substr(kScheme.size()), '/');
  bool is_odd = url.find_first_of("?#@\\ %") != url.npos || Visible(url) != url ||
                std::ranges::any_of(parts, &std::string::empty);
  if (is_odd) throw section.Fail("url", "expected an address without user, query, fragment and escapes");
  if (parts.size() != 2 && parts.size() != 3)
    throw section.Fail("url", "expected the address of an organization, a repository or an enterprise");
  return url;
}

void CheckLabels(const Section& section, const std::vector<std::string>& labels) {
  if (labels.size() > kMaxRunnerLabels) throw section.Fail("labels", "expected at most 100 labels");
  for (const std::string& label : labels) {
    if (label.empty() || label.size() > 256 || Visible(label) != label)
      throw section.Fail("labels", fmt::format("{} cannot be a label", Excerpt(label)));
  }
}

// Text that stands in a command line and in ssh's files as it is.
void CheckPlain(const Section& section, std::string_view key, std::string_view text,
                std::string_view others) {
  auto is_good = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != others.npos;
  };
  if (text.starts_with('-') || !std::ranges::all_of(text, is_good))
    throw section.Fail(key, fmt::format("expected letters, digits and any of {}", others));
}

RunnerSet ReadSet(const Section& section) {
  RunnerSet set;
  SetSettings().Read(section, set);
  CheckName(section, set.name);
  CheckLabels(section, set.labels);
  if (set.labels.empty()) set.labels = {set.name};
  CheckPlain(section, "user", set.user, "._-");
  CheckPlain(section, "folder", set.folder, "/._-");
  return set;
}

bool IsRepository(const std::string& name) {
  std::vector<std::string> parts = Split(name, '/');
  return parts.size() == 2 && IsName(parts[0]) && IsName(parts[1]);
}

// What only lists and webhooks of GitHub have.
void CheckRepositories(const Section& section, const RunnerService& service) {
  bool is_listed = service.kind == RunnerServiceKind::kGithub && service.mode != RunnerMode::kScaleSet;
  if (!is_listed && !service.repositories.empty())
    throw section.Fail("repos", "expected mode webhook or poll with it, at github");
  if (!is_listed && service.allows_forks)
    throw section.Fail("allow-forks", "expected mode webhook or poll with it, at github");
  for (const std::string& repository : service.repositories) {
    if (!IsRepository(repository))
      throw section.Fail("repos", fmt::format("expected OWNER/NAME, found {}", Excerpt(repository)));
  }
}

// What depends on the secrets; without any, which only nodepool-runners needs, nothing.
void CheckSecretsFor(const Section& section, const RunnerService& service) {
  const RunnerCredentials& credentials = service.credentials;
  if (credentials.empty()) return;
  if (service.kind == RunnerServiceKind::kForgejo && credentials.is_app())
    throw section.Fail("name", "Forgejo has no apps: expected token in the secure file");
  if (service.mode == RunnerMode::kWebhook && credentials.webhook_secrets.empty())
    throw section.Fail("mode", "webhook needs webhook-secret in the secure file");
  bool is_listed = service.kind == RunnerServiceKind::kGithub && service.mode != RunnerMode::kScaleSet;
  bool are_known = !service.Repository().empty() || !service.repositories.empty();
  if (is_listed && !credentials.is_app() && !are_known)
    throw section.Fail("name", "expected repos, since only an app can list its repositories");
}

// A label becomes a word of the runner's command line.
void CheckForgejo(const Section& section, const RunnerService& service) {
  if (!service.group.empty()) throw section.Fail("group", "Forgejo has no runner groups");
  for (const RunnerSet& set : service.sets) {
    for (const std::string& label : set.labels) {
      if (label.find_first_of(" ,:") != label.npos)
        throw section.Fail(
            "sets", fmt::format("{} cannot be a label of Forgejo: expected no blanks, commas and colons",
                                Excerpt(label)));
    }
  }
}

RunnerService ReadService(const Section& section) {
  RunnerService service;
  ServiceSettings().Read(section, service);
  CheckName(section, service.name);
  service.url = CheckedUrl(section, service.url);
  if (service.ssh_key.find_first_of("\"\n") != service.ssh_key.npos)
    throw section.Fail("ssh-key", "expected a path without quotes and line ends");
  std::set<std::string> names;
  for (const Section& each : section.Sections("sets")) {
    service.sets.push_back(ReadSet(each));
    if (!names.insert(Lower(service.sets.back().name)).second)
      throw each.Fail("name", fmt::format("the set {} is defined twice", service.sets.back().name));
  }
  CheckRepositories(section, service);
  if (service.kind == RunnerServiceKind::kForgejo) CheckForgejo(section, service);
  return service;
}

void CheckKey(const Section& section, const std::string& key) {
  if (!key.starts_with(kPemBegin)) return;  // a file, which only the host that runs the daemon needs to have
  Expected<RsaKey> parsed = RsaKey::Parse(key);
  if (!parsed) throw section.Fail("app-private-key", parsed.error().message());
}

RunnerCredentials ReadCredentials(const Section& section) {
  RunnerCredentials credentials;
  CredentialSettings().Read(section, credentials);
  bool is_digits =
      std::ranges::all_of(credentials.app_installation_id, [](char c) { return c >= '0' && c <= '9'; });
  bool has_whole_app = !credentials.app_client_id.empty() && !credentials.app_installation_id.empty() &&
                       !credentials.app_private_key.empty() && is_digits;
  bool has_any_app = !credentials.app_client_id.empty() || !credentials.app_installation_id.empty() ||
                     !credentials.app_private_key.empty();
  bool is_one_kind = has_any_app ? has_whole_app && credentials.token.empty() : !credentials.token.empty();
  if (!is_one_kind)
    throw section.Fail(
        "name",
        "expected either app-client-id, app-installation-id (a number) and app-private-key, or token");
  if (credentials.token.find_first_of("\r\n") != credentials.token.npos)
    throw section.Fail("token", "expected one line");
  CheckKey(section, credentials.app_private_key);
  return credentials;
}

void CheckUnique(const Section& section, const std::vector<RunnerService>& before,
                 const RunnerService& service) {
  for (const RunnerService& other : before) {
    if (other.name == service.name)
      throw section.Fail("name", fmt::format("the service {} is defined twice", service.name));
    if (Lower(other.url) != Lower(service.url)) continue;
    for (const RunnerSet& set : service.sets) {
      if (std::ranges::find(other.sets, Lower(set.name), [](const auto& each) { return Lower(each.name); }) !=
          other.sets.end())
        throw section.Fail("sets",
                           fmt::format("the set {} of this address is also one of {}", set.name, other.name));
    }
  }
}

}  // namespace

std::string RunnerService::Repository() const {
  std::vector<std::string> parts = Split(url, '/');  // "https:", "", host, owner, name
  bool is_repository = parts.size() == 5 && Lower(parts[3]) != "enterprises";
  return is_repository ? parts[3] + "/" + parts[4] : "";
}

bool RunnerService::Covers(const std::string& repository) const {
  auto is_it = [&](const std::string& other) { return Lower(other) == Lower(repository); };
  if (!repositories.empty()) return std::ranges::any_of(repositories, is_it);
  if (std::string own = Repository(); !own.empty()) return is_it(own);
  std::vector<std::string> parts = Split(url, '/');
  bool is_enterprise = parts.size() == 5;
  return is_enterprise || (parts.size() == 4 && Lower(repository).starts_with(Lower(parts[3]) + "/"));
}

Setting RunnersSetting() {
  return Setting("runners", Schema::List(ServiceSettings().ToSchema()),
                 "Services whose jobs nodepool-runners runs on nodes; their secrets are in the secure file.");
}

Setting RunnerSecretsSetting() {
  return Setting("runner-services", Schema::List(CredentialSettings().ToSchema()),
                 "Secrets of the services of `runners`.");
}

std::map<std::string, RunnerCredentials> ReadRunnerSecrets(const Section& secure_root) {
  std::map<std::string, RunnerCredentials> secrets;
  for (const Section& section : secure_root.Sections("runner-services")) {
    bool is_new = secrets.emplace(section.Text("name"), ReadCredentials(section)).second;
    if (!is_new) throw section.Fail("name", "the secrets of this service are defined twice");
  }
  return secrets;
}

std::vector<RunnerService> ReadRunners(const Section& root,
                                       const std::map<std::string, RunnerCredentials>& secrets) {
  std::vector<RunnerService> services;
  for (const Section& section : root.Sections("runners")) {
    RunnerService service = ReadService(section);
    CheckUnique(section, services, service);
    if (auto found = secrets.find(service.name); found != secrets.end()) service.credentials = found->second;
    CheckSecretsFor(section, service);
    services.push_back(std::move(service));
  }
  return services;
}

}  // namespace nodepool::config
