#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "model/job.h"

namespace re2 {
class RE2;
}

namespace nodepool::sched {

// Which jobs a rule means: the one of this name or, when the name begins with ^, those in
// whose name the regular expression (RE2) is found. Takes time linear in the job's name.
class JobMatcher {
 public:
  // Error(kInvalid): the expression cannot be used, or takes too much memory.
  static Expected<JobMatcher> Make(std::string name);

  bool Matches(const std::string& job) const;
  bool is_pattern() const { return pattern_ != nullptr; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<const re2::RE2> pattern_;
};

// All rules about jobs, by id.
class JobRules {
 public:
  struct Entry {
    JobId id;
    JobMatcher matcher;
    std::int64_t limit = 0;  // of nodes to hold; 0: none
  };

  // Adds or replaces a rule. The error says why it cannot be used; then it meets no job.
  std::optional<Error> Set(const JobId& id, const JobRule& rule);
  void Erase(const JobId& id);

  // Of those that mean the job the one with the lowest id (operations.md 13.5), though it may
  // hold nothing; null when there is none.
  const Entry* Find(const std::string& job) const;

 private:
  std::map<JobId, Entry> entries_;
  std::map<std::string, std::set<JobId>> exact_;  // by name
  std::set<JobId> patterns_;
};

using NodesByJob = std::map<std::string, std::set<NodeId>>;

// How many nodes are held, or are wished to be held, for jobs that the rule means.
std::size_t CountHolds(const JobMatcher& rule, const NodesByJob& held, const NodesByJob& wished);

// What is asked of the nodes there are.
struct KnownNodes {
  std::function<bool(const NodeId&)> exists;
  // Those with this hostname, this first part of their hostname, or this external id.
  std::function<const std::set<NodeId>&(const std::string& name)> named;
  // Whether its consumer has it, or has just given it back.
  std::function<bool(const NodeId&)> is_in_use;
};

// Which node is meant by what a job calls it. In this order (operations.md 13.9): a node's id,
// "np" and an id, hostname or external id, a name that ends in "-" and the id's number. Of
// several with the same hostname, as the slots of a static host are, the one in use. nullopt:
// there is none, or that does not decide.
std::optional<NodeId> FindNodeMeant(const std::string& name, const KnownNodes& nodes);

}  // namespace nodepool::sched
