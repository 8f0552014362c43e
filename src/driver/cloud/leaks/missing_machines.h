#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>

#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_environment.h"

namespace nodepool::driver::cloud {

// Equal for equal ids, which are texts or objects whose keys may have any order. Keyed as HashText is, since
// a cloud chooses its ids.
struct ExternalIdHash {
  std::size_t operator()(const boost::json::value& id) const;
};

using ExternalIds = std::unordered_set<boost::json::value, ExternalIdHash>;

// Looks again at something, one look at a time, of which at most one begins in a second. Whoever asks gets
// the result of a look that began after the question; all who ask before it begins share it.
class SecondLook {
 public:
  SecondLook(Loop& loop, std::function<Task<>()> look) : loop_(loop), look_(std::move(look)) {}
  SecondLook(const SecondLook&) = delete;
  SecondLook& operator=(const SecondLook&) = delete;

  // Fails as the look does.
  Task<> Take();

 private:
  Task<> LookOnce();

  Loop& loop_;
  std::function<Task<>()> look_;
  SteadyTime next_begin_{};  // not before
  bool is_looking_ = false;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;         // the number of the last one that ended
  std::optional<Failure> failure_;  // its
  WaitList end_;
};

// Finds nodes whose machines the cloud has taken away, or has announced to take away. A ready node without a
// request is marked for deletion; for a node in use this is logged, and noted in the record if that has no
// comment yet.
//
// A machine is missing if two consecutive checks miss it; a check that cannot read the cloud finds nothing.
// An announcement counts at once.
class MissingMachines {
 public:
  MissingMachines(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // One check. Throws when the adapter cannot answer.
  Task<> Check();

  // Call when the cloud announced that it takes a machine away.
  void Announce() { announced_.Set(); }
  // Checks twice after each announcement, until cancelled.
  Task<> FollowAnnouncements();

 private:
  using Machines = std::map<NodeId, boost::json::value>;  // external ids

  Machines Candidates() const;
  Task<Machines> Missing(Machines candidates);
  // The nodes whose machines will be taken away, with the reason.
  Task<std::map<NodeId, std::string>> Announced(Machines candidates);
  // `what` happened to the machine, for operators.
  Task<> Handle(NodeId id, boost::json::value external_id, std::string what);
  Task<> HandleOrWarn(NodeId id, boost::json::value external_id, std::string what);
  Task<> MarkForDeletion(NodeId id, boost::json::value external_id, std::string what);
  Task<> NoteInUse(NodeId id, boost::json::value external_id, std::string what);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  Machines seen_;           // missing in the last check
  std::set<NodeId> noted_;  // in use, missing or announced, and already logged
  std::string last_fault_;  // why announcements could not be read; empty: they could
  bool is_checking_ = false;
  Event announced_{"machines that the cloud takes away"};
};

}  // namespace nodepool::driver::cloud
