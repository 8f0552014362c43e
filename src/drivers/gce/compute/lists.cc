#include <map>
#include <set>

#include "async/attempt.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/own_types.h"
#include "drivers/gce/gce_adapter.h"

namespace nodepool::drivers::gce {

using driver::cloud::AnnouncedEnd;
using driver::cloud::Instance;
using driver::cloud::Resource;

namespace {

constexpr const char* kPreempted = "compute.instances.preempted";

// By zone; without those that cannot be listed.
using ByZone = std::map<std::string, std::shared_ptr<const GceInstances>>;

Task<ByZone> ListZonesOf(GceCloud& cloud, const std::vector<boost::json::value>& ids) {
  std::set<std::string> zones;
  for (const boost::json::value& id : ids) zones.insert(ReadExternalId(id, cloud.config->zone).zone);
  ByZone listed;
  for (const std::string& zone : zones) {
    Outcome<std::shared_ptr<const GceInstances>> list = co_await Attempt(cloud.RecentList(zone));
    if (list) listed[zone] = std::move(*list);
  }
  co_return listed;
}

// Null: the zone's list does not show it.
const GceInstance* FindIn(const GceCloud& cloud, const ByZone& listed, const MachineId& id) {
  auto zone = listed.find(id.zone);
  if (zone == listed.end()) return nullptr;
  auto found = zone->second->find(id.name);
  bool is_own = found != zone->second->end() && IsOwn(cloud, found->second);
  return is_own ? &found->second : nullptr;
}

// Google's announcements in a zone, by the instance's name; of several of one name the last.
Task<std::map<std::string, Operation>> ReadPreemptions(GceCloud& cloud, std::string zone) {
  ComputeCall call{"zoneOperations.list", "zones/" + zone + "/operations"};
  std::string filter = std::string("operationType=\"") + kPreempted + "\"";
  std::vector<Operation> operations =
      co_await cloud.compute.List<Operation>(std::move(call), std::move(filter), &ReadOperation);
  std::map<std::string, Operation> preempted;
  for (Operation& operation : operations) {
    std::string name = LastSegment(operation.target);
    if (operation.type == kPreempted) preempted.insert_or_assign(std::move(name), std::move(operation));
  }
  co_return preempted;
}

Task<std::vector<Resource>> MarkedInstances(GceCloud& cloud, std::string zone) {
  std::shared_ptr<const GceInstances> listed = co_await cloud.RecentList(zone);
  std::vector<Resource> resources;
  for (const auto& [name, instance] : *listed) {
    if (IsOwn(cloud, instance)) resources.push_back({kInstanceKind, zone + "/" + name, instance.metadata});
  }
  co_return resources;
}

}  // namespace

Task<std::vector<Instance>> GceAdapter::ListInstances() {
  std::vector<Instance> machines;
  std::optional<Failure> fault;
  bool is_any_listed = false;
  for (const std::string& zone : config_->zones) {
    Outcome<std::shared_ptr<const GceInstances>> list = co_await Attempt(cloud_.RecentList(zone));
    if (!list) fault = list.error();
    if (!list) continue;
    is_any_listed = true;
    for (const auto& [name, instance] : **list) machines.push_back(Describe(cloud_, instance));
  }
  if (!is_any_listed && fault) fault->Rethrow();
  co_return machines;
}

Task<std::vector<Resource>> GceAdapter::ListResources() {
  GceCloud& cloud = cloud_;
  std::vector<Resource> resources;
  for (const std::string& zone : cloud.config->zones) {
    Task<std::vector<Resource>> list = MarkedInstances(cloud, zone);
    co_await driver::cloud::AppendListed(cloud.logger, cloud.config->name, "instances", std::move(list),
                                         resources);
  }
  // The builder may have uploaded before.
  bool is_due =
      cloud.rare_sweeps.Begin() || driver::cloud::MayHaveImages(cloud.environment.framework, *cloud.config);
  if (is_due) co_await images_->AppendMarked(resources);
  co_return resources;
}

Task<std::vector<boost::json::value>> GceAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  ByZone listed = co_await ListZonesOf(cloud_, ids);
  std::erase_if(ids, [&](const boost::json::value& external_id) {
    MachineId id = ReadExternalId(external_id, config_->zone);
    return !listed.contains(id.zone) || FindIn(cloud_, listed, id) != nullptr;
  });
  co_return ids;
}

Task<std::vector<AnnouncedEnd>> GceAdapter::AnnouncedEnds(std::vector<boost::json::value> ids) {
  ByZone listed = co_await ListZonesOf(cloud_, ids);
  std::map<std::string, std::map<std::string, Operation>> preempted;  // by zone and name
  bool has_spot = driver::cloud::AnyLabel<GceLabel>(*cloud_.config, &GceLabel::use_spot);
  for (const auto& [zone, list] : listed) {
    if (!has_spot) break;
    Outcome<std::map<std::string, Operation>> read = co_await Attempt(ReadPreemptions(cloud_, zone));
    if (read) preempted[zone] = std::move(*read);
  }
  std::vector<AnnouncedEnd> ends;
  for (boost::json::value& external_id : ids) {
    MachineId id = ReadExternalId(external_id, config_->zone);
    if (!listed.contains(id.zone)) continue;
    const GceInstance* instance = FindIn(cloud_, listed, id);
    auto event = preempted[id.zone].find(id.name);
    bool has_event = event != preempted[id.zone].end();
    // One of another instance that had the name before says nothing.
    if (has_event && instance != nullptr) has_event = event->second.target_id == instance->number;
    if (has_event) {
      ends.push_back({std::move(external_id), "it was preempted (" + event->second.name + ")"});
    } else if (instance != nullptr && instance->is_lost()) {
      ends.push_back({std::move(external_id), "it is " + instance->status});
    }
  }
  co_return ends;
}

}  // namespace nodepool::drivers::gce
