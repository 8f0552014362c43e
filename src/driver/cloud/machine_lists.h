#pragma once

#include <algorithm>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/deadline.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "model/node.h"

namespace nodepool::driver::cloud {

// A machine by the place where it is listed and its key in that list.
struct MachineKey {
  std::string place;
  std::string key;
};

// The machines that a cloud lists for a provider, each place by itself, such as a zone; a cloud with one list
// for all has the place "". A place whose list cannot be read proves nothing of its machines, and holds up no
// other place. A Machine has a member `metadata`, which shows whose it is.
template <class Machine>
class MachineLists {
 public:
  using Machines = std::map<std::string, Machine>;
  using Cache = api::ListCache<Machines>;
  using Pointer = std::shared_ptr<const Machine>;

  struct Source {
    std::string name;  // for log lines: "instances of provider x"
    ProviderName provider;
    std::vector<std::string> places;  // where the provider makes machines
    std::function<Task<Machines>(std::string place)> read;
    // What a node's external id names. Null: Find and Missing are not called.
    std::function<MachineKey(const boost::json::value& external_id)> key_of = nullptr;
  };

  // A node's machine. Null: the list of its place does not show it, or it is not the provider's.
  struct Found {
    boost::json::value external_id;
    MachineKey key;
    Pointer machine;
  };

  // The reading belongs to `tasks`. Both outlive it.
  MachineLists(const DriverEnvironment& environment, TaskGroup& tasks, log::Logger logger, Source source)
      : random_(environment.random), tasks_(tasks), logger_(std::move(logger)), source_(std::move(source)) {}

  // The list of a place for tasks that wait for a change of it; also of a place that is not configured any
  // more, where old nodes may be.
  Cache& Of(const std::string& place) {
    std::unique_ptr<Cache>& found = caches_[place];
    if (found) return *found;
    auto read = [this, place] { return source_.read(place); };
    found = std::make_unique<Cache>(tasks_, random_, logger_, NameOf(place), std::move(read));
    return *found;
  }

  // A launch or a deletion has ended: lists that began before do not count any more.
  void NoteChange() { changed_ = tasks_.loop().SteadyNow(); }

  // All of a place, from a list that began at most kAge ago and after the last change. Error(kTimedOut): it
  // takes longer than `limit`.
  static constexpr Duration kAge = std::chrono::seconds(5);
  Task<std::shared_ptr<const Machines>> Recent(std::string place, Duration limit = kLimit) {
    SteadyTime now = tasks_.loop().SteadyNow();
    Task<typename Cache::Listing> list = Of(place).After(std::max(now - kAge, changed_));
    typename Cache::Listing listing =
        co_await WithDeadline(tasks_.loop(), now + limit, "listing " + NameOf(place), std::move(list));
    co_return listing.items;
  }

  // Those of all places, without places that cannot be listed. Errors: of the last one, if it is all of them.
  Task<std::vector<Pointer>> All() {
    std::vector<Pointer> machines;
    std::optional<Failure> fault;
    bool is_any_listed = false;
    for (const std::string& place : source_.places) {
      Outcome<std::shared_ptr<const Machines>> list = co_await Attempt(Recent(place));
      if (!list) fault = list.error();
      if (!list) continue;
      is_any_listed = true;
      for (const auto& [key, machine] : **list) machines.push_back(Pointer(*list, &machine));
    }
    if (!is_any_listed && fault) fault->Rethrow();
    co_return machines;
  }

  // Ends when a list that begins from now on does not show the machine. `is_it`: whether a machine of its key
  // is still the same. False: that takes longer than `limit`.
  Task<bool> AwaitGone(MachineKey machine, std::function<bool(const Machine&)> is_it, Duration limit) {
    auto is_gone = [key = machine.key, is_it = std::move(is_it)](const Machines& listed) {
      auto found = listed.find(key);
      return found == listed.end() || !is_it(found->second);
    };
    Task<> wait = Until(Of(machine.place), std::move(is_gone));
    return EndsBy(tasks_.loop(), tasks_.loop().SteadyNow() + limit, "the end of " + machine.key,
                  std::move(wait));
  }

  // What the provider's own machines use; none: a place could not be listed.
  Task<std::optional<Resources>> OwnUse(std::function<Resources(const Machine&)> use_of) {
    Resources own;
    for (const std::string& place : source_.places) {
      Outcome<std::shared_ptr<const Machines>> list = co_await Attempt(Recent(place, kLimitOfUse));
      if (!list) co_return std::nullopt;
      for (const auto& [key, machine] : **list) {
        if (IsOwn(machine)) Add(own, use_of(machine));
      }
    }
    co_return own;
  }

  // The machines of nodes, of places that can be listed.
  Task<std::vector<Found>> Find(std::vector<boost::json::value> external_ids) {
    std::map<std::string, std::shared_ptr<const Machines>> listed;
    for (const boost::json::value& id : external_ids) listed[source_.key_of(id).place];
    for (auto& [place, machines] : listed) {
      Outcome<std::shared_ptr<const Machines>> list = co_await Attempt(Recent(place));
      if (list) machines = std::move(*list);
    }
    std::vector<Found> found;
    for (boost::json::value& id : external_ids) {
      MachineKey key = source_.key_of(id);
      const std::shared_ptr<const Machines>& machines = listed.at(key.place);
      if (machines == nullptr) continue;
      auto entry = machines->find(key.key);
      bool is_own = entry != machines->end() && IsOwn(entry->second);
      Pointer machine = is_own ? Pointer(machines, &entry->second) : nullptr;
      found.push_back({std::move(id), std::move(key), std::move(machine)});
    }
    co_return found;
  }

  // As of Adapter::MissingMachines.
  Task<std::vector<boost::json::value>> Missing(std::vector<boost::json::value> external_ids) {
    std::vector<Found> found = co_await Find(std::move(external_ids));
    std::vector<boost::json::value> missing;
    for (Found& node : found) {
      if (node.machine == nullptr) missing.push_back(std::move(node.external_id));
    }
    co_return missing;
  }

  // Adds the provider's own to what is searched for leaks, as resources of `type` whose ids are "place/key",
  // or the key where there is no place. A place that cannot be listed is left out, with a warning.
  Task<> AppendOwn(const char* type, std::vector<Resource>& resources) {
    const std::string types = std::string(type) + "s";
    for (const std::string& place : source_.places) {
      Task<std::vector<Resource>> list = OwnOf(place, type);
      co_await AppendListed(logger_, source_.provider, types.c_str(), std::move(list), resources);
    }
  }

 private:
  static constexpr Duration kLimit = std::chrono::seconds(30);
  static constexpr Duration kLimitOfUse = std::chrono::seconds(20);

  std::string NameOf(const std::string& place) const {
    return place.empty() ? source_.name : source_.name + " in " + place;
  }

  bool IsOwn(const Machine& machine) const {
    return OwnerOf(machine.metadata).provider == source_.provider.str();
  }

  static Task<> Until(Cache& list, std::function<bool(const Machines&)> is_met) {
    co_await list.Until(std::move(is_met));
  }

  Task<std::vector<Resource>> OwnOf(std::string place, std::string type) {
    std::shared_ptr<const Machines> listed = co_await Recent(place);
    std::vector<Resource> resources;
    for (const auto& [key, machine] : *listed) {
      if (!IsOwn(machine)) continue;
      resources.push_back({type, place.empty() ? key : place + "/" + key, machine.metadata});
    }
    co_return resources;
  }

  Random& random_;
  TaskGroup& tasks_;
  log::Logger logger_;
  Source source_;
  std::map<std::string, std::unique_ptr<Cache>> caches_;  // by place
  SteadyTime changed_{};
};

}  // namespace nodepool::driver::cloud
