#pragma once

#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/resources.h"

namespace nodepool::driver {

// Why a launch was refused for lack of what others may give back: an Error(kQuota) that says what is lacking.
// The node is given up without using an attempt; its request waits and launches another (launcher.md 15.3).
class Refusal : public Error {
 public:
  enum class Kind {
    kQuota,     // the account may not use more
    kCapacity,  // the cloud itself has no more; another pool may
  };
  // `resources`, of what a node of the label needs, are all that can be short; none: that is unknown, and
  // only the label itself is held back.
  Refusal(Kind kind, std::string message, std::set<std::string> resources = {})
      : Error(Verdict::kQuota, std::move(message)), kind_(kind), resources_(std::move(resources)) {}
  // A quota that counts as `resource` is used up. `need`: of a node of the label; where it lacks the
  // resource, that is not what is short.
  static Refusal OfQuota(const std::string& resource, const Resources& need, std::string message) {
    std::set<std::string> lacking;
    if (need.contains(resource)) lacking.insert(resource);
    return Refusal(Kind::kQuota, std::move(message), std::move(lacking));
  }

  Kind kind() const { return kind_; }
  const std::set<std::string>& resources() const { return resources_; }

 private:
  Kind kind_;
  std::set<std::string> resources_;
};

}  // namespace nodepool::driver
