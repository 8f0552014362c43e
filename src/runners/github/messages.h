#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "runners/scale_sets.h"

// Reading the Actions service's JSON; pure (runners.md 2.5 to 2.7). Unknown members are left out, missing
// ones are empty, and members of another type as if missing.
namespace nodepool::runners::github {

// nullopt: not a set with an id.
std::optional<ScaleSet> ReadSet(const boost::json::value& value);
// nullopt: a member that is needed is missing.
std::optional<MessageSession> ReadSession(const boost::json::value& value);
std::optional<sched::JobStatistics> ReadStatistics(const boost::json::value& parent);
// A message of the queue; `site` begins the addresses of runs: "https://github.com". nullopt: it has no id. A
// body that cannot be read gives a batch without jobs.
std::optional<MessageBatch> ReadBatch(const boost::json::value& value, const std::string& site);
std::optional<RegisteredRunner> ReadRunner(const boost::json::value& value);
// The new runner of an answer, with its configuration, which is below `key`. Error(kRetry): there is none.
Registration ReadRegistration(const boost::json::value& answer, std::string_view key);

// At most so many jobs of one message are read.
inline constexpr std::size_t kMaxJobsOfBatch = 1000;

}  // namespace nodepool::runners::github
