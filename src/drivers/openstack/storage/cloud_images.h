#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/random.h"
#include "driver/provider_config.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

// Images of the cloud that labels name: which are there, and their ids. Those that are
// there are remembered until a creation shows that something is out of date. Those that
// are not are looked for again after 5 s, 10 s and so on up to 300 s, and when a request
// wants one; one call looks for all of them (driver-openstack.md 12.3).
class CloudImages {
 public:
  // `names`: names or ids. `looked` is called after each look. The tasks belong to
  // `tasks`; everything outlives this.
  CloudImages(Session& session, TaskGroup& tasks, Random& random, std::set<std::string> names,
              std::function<void()> looked);

  // The id of the active image. Error(kInvalid): there is none, or there are several.
  Task<std::string> Id(std::string name);

  // Whether Id() would succeed. A no is at most 5 s old; without one so young the answer
  // is kUnknown, and `looked` is called when there is one.
  driver::Readiness ReadinessOf(const std::string& name);

  // Looks for what is not known. What goes wrong is logged, and tried again later.
  Task<> Look();

  // What is known is out of date.
  void Clear();

 private:
  struct Finding {
    std::string id;  // empty: `problem` says why
    std::string problem;
    SteadyTime looked;
  };

  // Null: unknown, or too old to be relied on.
  const Finding* Known(const std::string& name) const;
  std::vector<std::string> Missing() const;
  std::vector<std::string> Unknown() const;
  Task<> LookOnce();
  void Note(const std::string& name, const std::vector<std::string>& ids);
  void WatchMissing();
  Task<> Watch(std::uint64_t number);

  Session& session_;
  TaskGroup& tasks_;
  Random& random_;
  std::set<std::string> names_;
  std::function<void()> looked_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  std::map<std::string, Finding> findings_;
  std::uint64_t generation_ = 0;  // of the findings; a look that began before Clear() does not count
  bool is_looking_ = false;
  std::optional<SteadyTime> last_look_;  // none: it does not count any more
  WaitList looked_once_;
  std::set<std::string> watched_;  // what is looked for again and again, by the latest watch
  std::uint64_t watches_ = 0;
};

}  // namespace nodepool::drivers::openstack
