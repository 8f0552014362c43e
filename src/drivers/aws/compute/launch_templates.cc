#include "drivers/aws/compute/launch_templates.h"

#include <map>

#include "async/attempt.h"
#include "async/backoff.h"
#include "base/request_id.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Backoff::Settings kPauses{std::chrono::seconds(1), std::chrono::minutes(1)};

// By name.
std::map<std::string, LaunchTemplate> Needed(const AwsConfig& config) {
  std::map<std::string, LaunchTemplate> needed;
  for (const auto& [pool_name, entry] : config.pools) {
    const auto& pool = dynamic_cast<const AwsPool&>(*entry);
    for (const auto& [label_name, label_entry] : pool.labels) {
      const auto& label = dynamic_cast<const AwsLabel&>(*label_entry);
      if (!label.fleet_strategy) continue;
      LaunchTemplate wanted = TemplateOf(label, pool, config.name.str());
      std::string name = wanted.name;
      needed.emplace(std::move(name), std::move(wanted));
    }
  }
  return needed;
}

Task<> CreateTemplate(Ec2& ec2, Query query) {
  Outcome<> created = co_await Attempt(ec2.Call(std::move(query)));
  bool exists = !created && CodeOf(created.error()) == "InvalidLaunchTemplateName.AlreadyExistsException";
  if (!created && !exists) created.error().Rethrow();
}

Task<> DeleteTemplate(Ec2& ec2, const log::Logger& logger, std::string name) {
  Query query("DeleteLaunchTemplate");
  query.Add("LaunchTemplateName", name);
  Outcome<> deleted = co_await Attempt(ec2.Call(std::move(query)));
  bool is_gone = deleted || CodeOf(deleted.error()) == "InvalidLaunchTemplateName.NotFoundException";
  if (is_gone) {
    logger.Info("Deleted launch template {}: no label needs it", name);
  } else {
    logger.Warning("Launch template {}, which no label needs, could not be deleted: {}", name,
                   deleted.error().message());
  }
}

}  // namespace

std::vector<ListedTemplate> ReadTemplates(const pugi::xml_node& root) {
  std::vector<ListedTemplate> templates;
  for (const pugi::xml_node& item : Items(root, "launchTemplates")) {
    std::map<std::string, std::string> tags = ReadTagSet(item);
    templates.push_back({TextAt(item, {"launchTemplateName"}), tags[driver::cloud::kProviderKey]});
  }
  return templates;
}

LaunchTemplates::LaunchTemplates(const driver::ProviderEnvironment& environment, const AwsConfig& config,
                                 Ec2& ec2, TaskGroup& tasks, log::Logger logger)
    : environment_(environment), config_(config), ec2_(ec2), tasks_(tasks), logger_(std::move(logger)) {}

void LaunchTemplates::Start() {
  if (std::exchange(is_started_, true)) return;
  tasks_.Spawn("launch templates of " + config_.name.str(), Run(true));
}

void LaunchTemplates::MakeAgain() {
  bool are_being_made = is_started_ && !ready_.is_set();
  if (are_being_made) return;
  is_started_ = true;
  ready_.Reset();
  tasks_.Spawn("launch templates of " + config_.name.str(), Run(false));
}

Task<> LaunchTemplates::WaitReady() {
  if (is_started_) co_await ready_.Wait();
}

Task<> LaunchTemplates::Run(bool removes) {
  Backoff pauses(kPauses, environment_.random);
  std::string last_fault;
  while (true) {
    Outcome<> made = co_await Attempt(Make(removes));
    if (made) break;
    // An account without fleets need not permit anything about templates.
    bool is_new = ReplaceMessage(last_fault, made.error().message());
    bool are_needed = !Needed(config_).empty();
    logger_.Write(is_new && are_needed ? log::Level::kWarning : log::Level::kDebug,
                  "The launch templates of provider " + config_.name.str() +
                      " could not be made; labels with fleet wait: " + made.error().message());
    if (!are_needed) break;
    Duration pause = pauses.Next();
    co_await tasks_.loop().SleepFor(pause);
  }
  ready_.Set();
  environment_.capacity_changed();
}

Task<> LaunchTemplates::Make(bool removes) {
  std::map<std::string, LaunchTemplate> needed = Needed(config_);
  Query query("DescribeLaunchTemplates");
  query.AddFilter("launch-template-name", {std::string(kTemplatePrefix) + "*"});
  std::vector<ListedTemplate> existing = co_await ec2_.List(std::move(query), &ReadTemplates);
  std::set<std::string> names;
  for (const ListedTemplate& one : existing) names.insert(one.name);
  for (const auto& [name, wanted] : needed) {
    if (names.contains(name)) continue;
    Query creation = CreateLaunchTemplate(wanted, config_.name.str());
    co_await CreateTemplate(ec2_, std::move(creation));
    logger_.Info("Made launch template {}", name);
  }
  if (!removes) co_return;
  for (const ListedTemplate& one : existing) {
    if (one.provider != config_.name.str() || needed.contains(one.name)) continue;
    std::string name = one.name;
    co_await DeleteTemplate(ec2_, logger_, std::move(name));
  }
}

}  // namespace nodepool::drivers::aws
