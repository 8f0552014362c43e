#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "async/task.h"
#include "base/log/logging.h"
#include "model/resources.h"

namespace nodepool::driver::cloud {

// A limit of an account and how much all who share the account use of it.
struct Counter {
  double limit = 0;
  double usage = 0;
};

// The limits that a cloud reports, with the use of each, by the resources of nodes that count under them.
class AccountCounters {
 public:
  // Calls Set for what the cloud reports now.
  using Read = std::function<Task<>(AccountCounters& counters)>;

  // `cloud` and `what` are for log lines: "Google", "region us-central1".
  AccountCounters(std::string cloud, std::string what, log::Logger logger, Read read)
      : cloud_(std::move(cloud)),
        what_(std::move(what)),
        logger_(std::move(logger)),
        read_(std::move(read)) {}

  // Reads them again. What cannot be read keeps its last values, or is unlimited; each cause is logged once.
  Task<> Refresh();
  // Why the last reading failed; empty: it succeeded.
  const std::string& fault() const { return fault_; }

  // Amounts are the cloud's, and may be anything. A counter without a name is left out.
  void Set(const std::string& resource, double limit, double usage);
  // Null: the cloud reports no such limit, or it is not known yet.
  const Counter* Find(const std::string& resource) const;

  // The limits, or the use, of those of `resources` that are known.
  Resources Limits(const std::set<std::string>& resources) const {
    return Collect(resources, &Counter::limit);
  }
  Resources Usage(const std::set<std::string>& resources) const {
    return Collect(resources, &Counter::usage);
  }

 private:
  Resources Collect(const std::set<std::string>& resources, double Counter::*amount) const;

  std::string cloud_;
  std::string what_;
  log::Logger logger_;
  Read read_;
  std::map<std::string, Counter> known_;
  std::string fault_;
};

}  // namespace nodepool::driver::cloud
