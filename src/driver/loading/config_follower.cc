#include "driver/loading/config_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/scope_exit.h"
#include "base/text.h"
#include "base/tls_files.h"
#include "model/image.h"

namespace nodepool::driver {

namespace {

using config::Finding;

// Several providers may suffer from one fault, such as a missing clouds.yaml.
void AddOnce(config::ValidationReport& report, Finding::Level level, std::string message) {
  bool is_known = std::ranges::find(report.findings, message, &Finding::message) != report.findings.end();
  if (!is_known) report.findings.push_back({level, std::move(message)});
}

// Why the web server cannot use its certificate; nullopt: it can, or has none.
std::optional<Error> CertificateFault(const config::WebAppSettings& webapp) {
  if (!webapp.tls) return std::nullopt;
  try {
    boost::asio::ssl::context context(boost::asio::ssl::context::tls_server);
    UseCertificate(context, {webapp.tls->cert, webapp.tls->key}, "webapp.tls");
  } catch (const Error& fault) {
    return fault;
  }
  return std::nullopt;
}

// What a launcher needs beside a good file: the way to ZooKeeper, and files that the configuration names.
// Warnings, since the Python implementation's validator, whose verdict counts, asks for neither.
std::vector<Error> LacksOf(const config::Config& config) {
  std::vector<Error> lacks;
  if (!config.zookeeper.servers.empty()) lacks = config::ZooKeeperFaults(config.zookeeper);
  if (std::optional<Error> fault = CertificateFault(config.webapp)) lacks.push_back(std::move(*fault));
  return lacks;
}

// What is missing for one of the programs, which may not be meant to run with the file.
void HintAtPrograms(const config::Config& config, config::ValidationReport& report) {
  if (config.zookeeper.servers.empty()) {
    AddOnce(report, Finding::Level::kHint,
            "there are no zookeeper-servers: only `nodepool standalone` starts with this file");
  }
  if (!config.diskimages.empty() && !config.images_dir)
    AddOnce(report, Finding::Level::kHint, "there is no images-dir: a builder does not start with this file");
}

std::string Counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

ConfigCheck CheckConfig(const std::string& path, const Registry& drivers,
                        const config::LoadOptions& options) {
  ConfigCheck check;
  Expected<config::Document> document = config::ReadDocument(path, options.environment);
  check.report = config::ValidateDocument(document, options);
  if (check.report.exit_status() != 0) return check;
  LoadReport load = LoadAll(path, document, drivers, options);
  std::vector<Error> lacks = LacksOf(load.loaded.common);
  check.can_start = load.faults.empty() && lacks.empty();
  for (const Error& fault : load.faults) AddOnce(check.report, Finding::Level::kError, fault.message());
  for (const Error& lack : lacks) AddOnce(check.report, Finding::Level::kWarning, lack.In(path).message());
  for (const auto& [name, provider] : load.loaded.providers) {
    if (!provider->fault.empty()) AddOnce(check.report, Finding::Level::kWarning, provider->fault);
  }
  for (const std::string& warning : load.loaded.common.warnings)
    AddOnce(check.report, Finding::Level::kWarning, warning);
  if (check.can_start) HintAtPrograms(load.loaded.common, check.report);
  check.loaded = std::make_shared<const LoadedConfig>(std::move(load.loaded));
  return check;
}

void MakeStrict(config::ValidationReport& report) {
  for (Finding& finding : report.findings) {
    if (finding.level == Finding::Level::kWarning) finding.level = Finding::Level::kError;
  }
}

std::string ContentsOf(const config::Config& config) {
  return fmt::format("{}, {}, {}", Counted(config.providers.size(), "provider"),
                     Counted(config.labels.size(), "label"), Counted(config.diskimages.size(), "image"));
}

std::string Summary(const ConfigCheck& check, const std::string& path) {
  std::size_t errors = check.report.Count(Finding::Level::kError);
  std::size_t warnings = check.report.Count(Finding::Level::kWarning);
  if (errors + warnings == 0) return fmt::format("{} is good: {}", path, ContentsOf(check.loaded->common));
  std::vector<std::string> counts;
  if (errors > 0) counts.push_back(Counted(errors, "error"));
  if (warnings > 0) counts.push_back(Counted(warnings, "warning"));
  std::string meaning;
  if (check.loaded && check.can_start) meaning = "; the launcher starts with it";
  if (check.loaded && !check.can_start)
    meaning = errors > 0 ? "; the launcher does not start with it"
                         : "; the launcher starts with it when the warnings have been dealt with";
  return fmt::format("{} has {}{}", path, Join(counts, " and "), meaning);
}

namespace {

using listing::Configured;

void AddPools(Configured& configured, const ProviderConfig& provider) {
  for (const auto& [name, pool] : provider.pools) {
    configured.pools[{provider.name, name}] = pool->Limit().resources();
    std::set<LabelName>& labels_of_pool = configured.pool_labels[{provider.name, name}];
    for (const auto& [label, settings] : pool->labels) {
      if (IsValidationLabel(label)) continue;
      labels_of_pool.insert(label);
      if (!settings->diskimage) continue;
      auto image = configured.images.find(*settings->diskimage);
      if (image == configured.images.end()) continue;
      auto labels = image->second.labels.find(provider.name);
      if (labels != image->second.labels.end()) labels->second.insert(label);
    }
  }
}

void AddUploads(Configured& configured, const ProviderConfig& provider) {
  if (!provider.manages_images) return;
  for (const auto& [name, settings] : provider.diskimages) {
    auto image = configured.images.find(name);
    if (image != configured.images.end() && !settings->is_paused) image->second.labels[provider.name];
  }
}

}  // namespace

Configured ConfiguredBy(const LoadedConfig& config) {
  Configured configured;
  for (const config::ProviderSection& section : config.common.providers)
    configured.drivers[section.name] = section.driver;
  for (const auto& [name, label] : config.common.labels) configured.labels[name] = label.min_ready;
  configured.tenant_limits = config.common.tenant_limits;
  for (const auto& [name, image] : config.common.diskimages)
    configured.images[name] = {image.is_paused, image.rebuild_age, config.common.build_log_dir, {}};
  for (const auto& [name, provider] : config.providers) {
    AddUploads(configured, *provider);
    AddPools(configured, *provider);
  }
  return configured;
}

namespace {

constexpr Duration kCheckInterval = std::chrono::seconds(1);
constexpr Duration kWriting = std::chrono::seconds(1);  // max. time for writing the files in several steps
constexpr Duration kRetryBad = std::chrono::seconds(10);

}  // namespace

ConfigFollower::ConfigFollower(Loop& loop, std::string path, std::optional<std::string> secure_path,
                               const Registry& drivers, config::DriverSchemas others)
    : loop_(loop),
      path_(std::move(path)),
      secure_path_(std::move(secure_path)),
      drivers_(drivers),
      others_(std::move(others)),
      logger_("nodepool.NodePool"),
      watch_(loop, Paths(), [this] { news_.Set(); }),
      loaded_(Identity()) {
  if (!watch_.fault().empty())
    logger_.Warning("Changes of the configuration are seen once a second, not at once: {}", watch_.fault());
}

std::vector<std::string> ConfigFollower::Paths() const {
  std::vector<std::string> paths = {path_};
  if (secure_path_) paths.push_back(*secure_path_);
  return paths;
}

std::string ConfigFollower::Identity() const {
  std::string identity;
  for (const std::string& path : Paths()) identity += FileIdentity(path) + " ";
  return identity;
}

Task<> ConfigFollower::AwaitNews() {
  Clock::TimerId timer = loop_.clock().CallAt(loop_.SteadyNow() + kCheckInterval, [this] { news_.Set(); });
  ScopeExit cancel([this, timer] { loop_.clock().CancelTimer(timer); });
  co_await news_.Wait();
  news_.Reset();
}

Task<std::shared_ptr<const LoadedConfig>> ConfigFollower::Next() {
  while (true) {
    co_await AwaitNews();
    bool is_changed = Identity() != loaded_;
    bool is_retry = retry_at_ && loop_.SteadyNow() >= *retry_at_;
    if (is_changed) changed_at_ = loop_.SteadyNow();
    if (!is_due_ && !is_retry && !is_changed) continue;
    bool is_only_retry = !is_due_ && !is_changed;
    if (auto config = TryLoad(is_only_retry)) co_return config;
  }
}

ConfigFollower::Faults ConfigFollower::FaultsOf(const LoadedConfig& config) {
  Faults faults;
  for (const auto& [name, provider] : config.providers) {
    if (!provider->fault.empty()) faults.emplace(name, provider->fault);
  }
  return faults;
}

void ConfigFollower::InForce(const LoadedConfig& config) {
  faults_ = FaultsOf(config);
  if (!faults_.empty()) retry_at_ = loop_.SteadyNow() + kRetryBad;
}

std::shared_ptr<const LoadedConfig> ConfigFollower::TryLoad(bool is_retry) {
  bool may_be_half_written = !is_due_ && loop_.SteadyNow() < changed_at_ + kWriting;
  is_due_ = false;
  retry_at_.reset();
  // Taken first, so that a change while the files are read is seen by the next check.
  loaded_ = Identity();
  auto config = LoadConfig(path_, secure_path_, drivers_, others_);
  if (config) {
    bool is_news = !is_retry || rejected_ || FaultsOf(**config) != faults_;
    InForce(**config);
    if (!is_news) return nullptr;
    logger_.Info("The configuration was read again from {}", path_);
    for (const std::string& warning : (*config)->common.warnings) logger_.Warning("{}", warning);
    if (std::exchange(rejected_, std::nullopt)) on_rejection_(rejected_);
    return *config;
  }
  if (may_be_half_written) {
    retry_at_ = changed_at_ + kWriting;
    return nullptr;
  }
  Reject(config.error().what());
  retry_at_ = loop_.SteadyNow() + kRetryBad;
  return nullptr;
}

// Logs a new error only.
void ConfigFollower::Reject(std::string error) {
  if (!rejected_ || rejected_->error != error) {
    logger_.Error(
        "Exception in main loop: the changed configuration cannot be used, the previous one stays in force: "
        "{}",
        error);
  }
  rejected_ = {rejected_ ? rejected_->since : loop_.Now(), std::move(error)};
  on_rejection_(rejected_);
}

}  // namespace nodepool::driver
