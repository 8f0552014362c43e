#include "driver/loading/check_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "base/tls_files.h"

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

}  // namespace nodepool::driver
