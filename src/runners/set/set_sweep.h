#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "runners/context.h"

namespace nodepool::runners {

// Keeps the leases of a set alive, and removes what nothing is left of: registrations and leases of ours
// without a run (runners.md 11), and what webhooks said of jobs long ago. What is not ours is never touched.
class SetSweep {
 public:
  // The leases and the runners' names of all runs that there are now.
  struct Known {
    std::set<LeaseId> leases;
    std::set<std::string> runner_names;
  };

  // Everything outlives it.
  SetSweep(SetContext& set, std::function<Known()> known) : set_(set), known_(std::move(known)) {}

  // Both work until they are cancelled.
  Task<> RenewLeases();
  Task<> Run();

 private:
  Task<> RenewOnce();
  Task<> SweepRegistrations();
  Task<> SweepLeases();
  Task<> SweepHookedJobs();
  bool IsOurs(const std::string& runner_name) const;

  SetContext& set_;
  std::function<Known()> known_;
  std::map<std::string, WallTime> offline_since_;  // registrations without a record, by runner's name
};

}  // namespace nodepool::runners
