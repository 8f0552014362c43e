#pragma once

#include <functional>
#include <string>

#include "runners/context.h"

namespace nodepool::runners {

// How old the runner on a set's nodes is: GitHub refuses one 30 days after the release of a newer one, and
// has no date for that (runners.md 8). What is known is in the set's record.
class RunnerVersions {
 public:
  // Everything outlives it. `changed` is called when there is something new.
  RunnerVersions(SetContext& set, RunnerSetRecord& record, std::function<void()> changed)
      : set_(set), record_(record), changed_(std::move(changed)) {}

  // Asks the service once a day what is the newest, until it is cancelled.
  Task<> Follow();
  // A node has the version; empty: that is not known.
  void Seen(const std::string& version);
  // What will not work any more, and when, for people; empty: nothing. Measures it, too.
  std::string Warning() const;

 private:
  SetContext& set_;
  RunnerSetRecord& record_;
  std::function<void()> changed_;
};

// The warning; empty: nothing is wrong, or not known.
std::string VersionWarning(const std::string& version, const std::string& newest, WallTime newer_since,
                           WallTime now);
// Whether "2.9.1" is older than "2.10.0"; false where one is not known.
bool IsOlderVersion(const std::string& version, const std::string& other);

}  // namespace nodepool::runners
