#include <map>

#include "async/attempt.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/own_types.h"
#include "drivers/gce/gce_adapter.h"

namespace nodepool::drivers::gce {

using driver::cloud::AnnouncedEnd;
using driver::cloud::Instance;
using driver::cloud::Resource;
using driver::cloud::api::LastSegment;

namespace {

constexpr const char* kPreempted = "compute.instances.preempted";

// Google's announcements in a zone, by the instance's name; of several of one name the last.
using Preemptions = std::map<std::string, Operation>;

// None: they cannot be read.
Task<Preemptions> ReadPreemptions(GceCloud& cloud, std::string zone) {
  ComputeCall call{"zoneOperations.list", "zones/" + zone + "/operations"};
  std::string filter = std::string("operationType=\"") + kPreempted + "\"";
  Outcome<std::vector<Operation>> operations =
      co_await Attempt(cloud.compute.List<Operation>(std::move(call), filter, &ReadOperation));
  Preemptions preempted;
  if (!operations) co_return preempted;
  for (Operation& operation : *operations) {
    if (operation.type == kPreempted) preempted[LastSegment(operation.target)] = std::move(operation);
  }
  co_return preempted;
}

// Why the node's instance ends; empty: it does not.
std::string EndOf(const InstanceLists::Found& node, const Preemptions& preempted) {
  auto event = preempted.find(node.key.key);
  bool has_event = event != preempted.end();
  // One of another instance that had the name before says nothing.
  if (has_event && node.machine) has_event = event->second.target_id == node.machine->number;
  if (has_event) return "it was preempted (" + event->second.name + ")";
  return node.machine && node.machine->is_lost() ? "it is " + node.machine->status : "";
}

}  // namespace

Task<std::vector<Instance>> GceAdapter::ListInstances() {
  std::vector<InstanceLists::Pointer> listed = co_await cloud_.all.All();
  std::vector<Instance> machines;
  for (const InstanceLists::Pointer& instance : listed) machines.push_back(Describe(cloud_, *instance));
  co_return machines;
}

Task<std::vector<Resource>> GceAdapter::ListResources() {
  std::vector<Resource> resources;
  co_await cloud_.all.AppendOwn(kInstanceKind, resources);
  // The builder may have uploaded before.
  bool is_due = cloud_.rare_sweeps.Begin() ||
                driver::cloud::MayHaveImages(cloud_.environment.framework, *cloud_.config);
  if (is_due) co_await images_->AppendMarked(resources);
  co_return resources;
}

Task<std::vector<boost::json::value>> GceAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return cloud_.all.Missing(std::move(ids));
}

Task<std::vector<AnnouncedEnd>> GceAdapter::AnnouncedEnds(std::vector<boost::json::value> ids) {
  std::vector<InstanceLists::Found> nodes = co_await cloud_.all.Find(std::move(ids));
  std::map<std::string, Preemptions> preempted;  // by zone
  bool has_spot = driver::cloud::AnyLabel<GceLabel>(*cloud_.config, &GceLabel::use_spot);
  for (const InstanceLists::Found& node : nodes) {
    const std::string& zone = node.key.place;
    if (!has_spot || preempted.contains(zone)) continue;
    Preemptions read = co_await ReadPreemptions(cloud_, zone);
    preempted[zone] = std::move(read);
  }
  std::vector<AnnouncedEnd> ends;
  for (InstanceLists::Found& node : nodes) {
    std::string end = EndOf(node, preempted[node.key.place]);
    if (!end.empty()) ends.push_back({std::move(node.external_id), std::move(end)});
  }
  co_return ends;
}

}  // namespace nodepool::drivers::gce
