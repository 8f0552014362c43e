#pragma once

#include <boost/json/array.hpp>
#include <map>
#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Why requests wait, according to the launchers: for each request the entries of `waits`
// (docs/reference/api.md), each with the `launcher` that reported it.
using WaitsByRequest = std::map<RequestId, boost::json::array>;

// What launchers say of requests beyond the records in the tree.
struct LaunchersAnswers {
  WaitsByRequest waits;
  // Those that failed and that their clients have deleted in the last hour.
  std::map<RequestId, store::StoredRequest> deleted;
  bool has_all = true;  // false: a launcher gave no valid answer
};

// Queries the web servers of all registered launchers concurrently. A launcher without a valid answer is
// named in the log and left out.
Task<LaunchersAnswers> AskAboutRequests(Context& context);

// The reasons as text: one line for each pool that reported one.
std::string WaitText(const boost::json::array& waits);

// Adds the answer of one launcher, received at `now`. Error(kInvalid) if it is malformed.
void AddAnswer(LaunchersAnswers& answers, const std::string& hostname, std::string_view answer, WallTime now);

}  // namespace nodepool::cli
