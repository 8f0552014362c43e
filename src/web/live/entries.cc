#include "web/live/entries.h"

#include <boost/json/serialize.hpp>
#include <utility>

#include "web/api/api_fields.h"
#include "web/requests/lease_fields.h"

namespace nodepool::web {

std::optional<std::string> NodeEntry(const launcher::Launcher& launcher, const NodeId& id) {
  const store::StoredNode* node = launcher.records().nodes.Find(id);
  if (node == nullptr) return std::nullopt;
  return NodeFields().WithTimes(*node);
}

std::optional<std::string> RequestEntry(const launcher::Launcher& launcher, const RequestId& id) {
  std::optional<launcher::RequestStatus> status = launcher.FindRequest(id);
  if (!status) return std::nullopt;
  return RequestFields().WithTimes(*status);
}

std::optional<std::string> EntryOfImage(const launcher::Launcher& launcher, const ImageName& name) {
  if (!launcher.records().images.images().contains(name)) return std::nullopt;
  return ImageFields().WithTimes(EntryOf(launcher, name));
}

std::string LeaseEntryFor(const launcher::Launcher& launcher, const store::StoredLease& lease,
                          bool is_client) {
  return boost::json::serialize(LeaseFields().ToJson({lease, launcher, is_client}));
}

std::optional<std::string> BuildEntry(const launcher::Launcher& launcher, const store::BuildKey& key) {
  const auto& builds = launcher.records().images.builds();
  auto build = builds.find(key);
  if (build == builds.end()) return std::nullopt;
  return BuildFields().WithTimes(build->second);
}

std::optional<std::string> UploadEntry(const launcher::Launcher& launcher, const store::UploadKey& key) {
  const auto& uploads = launcher.records().images.uploads();
  auto upload = uploads.find(key);
  if (upload == uploads.end()) return std::nullopt;
  return UploadFields().WithTimes(upload->second);
}

std::string PathOf(const store::BuildKey& key) { return key.image.value + "/" + key.build.value; }

std::string PathOf(const store::UploadKey& key) {
  return PathOf(key.build) + "/" + key.provider.value + "/" + key.upload.value;
}

Published::Entries ProviderEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (launcher::ProviderStatus& provider : launcher.ClusterProviders()) {
    provider.next_start.reset();
    entries[provider.name.value] = ProviderFields().WithTimes(provider);
  }
  return entries;
}

Published::Entries ComponentEntries(const store::Caches& records) {
  Published::Entries entries;
  for (const ComponentEntry& component : records.components.all()) {
    entries[component.first] = ComponentFields().WithTimes(component);
  }
  return entries;
}

Published::Entries JobEntries(const store::Caches& records) {
  Published::Entries entries;
  for (const auto& [id, rule] : records.jobs.rules()) {
    entries[id.value] = JobFields().WithTimes({rule, records.nodes, records.jobs});
  }
  return entries;
}

Published::Entries RunnerEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (const listing::RunnerSetRow& set : listing::RunnerSets(launcher.records().runners))
    entries[set.key.str()] = RunnerFields().WithTimes(set);
  return entries;
}

Published::Entries RunnerJobEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (const listing::RunnerJobRow& job : RunnerJobsOf(launcher))
    entries[job.set + "/" + job.id] = RunnerJobFields().WithTimes(job);
  return entries;
}

Published::Entries ProblemEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (const listing::Problem& problem : launcher.Problems())
    entries[problem.id()] = ProblemFields().WithTimes(problem);
  return entries;
}

void Published::Replace(Entries entries, const See& see) {
  Entries before = std::exchange(entries_, std::move(entries));
  for (const auto& [key, json] : before) {
    if (!entries_.contains(key)) see(key, nullptr);
  }
  for (const auto& [key, json] : entries_) {
    auto known = before.find(key);
    if (known == before.end() || known->second != json) see(key, &json);
  }
}

void Published::Set(const std::string& key, std::optional<std::string> json, const See& see) {
  if (!json) {
    if (entries_.erase(key) > 0) see(key, nullptr);
    return;
  }
  auto [entry, is_new] = entries_.try_emplace(key);
  if (!is_new && entry->second == *json) return;
  entry->second = std::move(*json);
  see(key, &entry->second);
}

}  // namespace nodepool::web
