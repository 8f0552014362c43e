#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "listing/record_listing.h"
#include "sched/requests/reason.h"

namespace nodepool::cli {

// Members of the answers of web servers, which may be missing or of any type.

// nullopt: there is no such text.
std::optional<std::string> OptionalTextIn(const boost::json::object& entry, std::string_view key);
// The texts in the list; what else is in it is left out.
std::vector<std::string> TextsIn(const boost::json::object& entry, std::string_view key);

// Why requests wait, according to the launchers: for each request the entries of `waits`
// (build/docs/reference/api.md), each with the `launcher` that reported it.
using WaitsByRequest = std::map<RequestId, boost::json::array>;

// What launchers say of requests beyond the records in the tree.
struct LaunchersAnswers {
  WaitsByRequest waits;
  // Those that failed and that their clients have deleted in the last hour.
  std::map<RequestId, store::StoredRequest> deleted;
  std::vector<sched::RequestReason> silent;  // for each launcher that gave no valid answer
  bool has_launchers = false;
};

// Queries the web servers of all registered launchers concurrently.
Task<LaunchersAnswers> AskAboutRequests(Context& context);
// Logs which of them gave no valid answer.
void WarnOfSilent(Context& context, const LaunchersAnswers& answers);

// The sentence of what decides that the request waits, of what all launchers say, or that one does not
// answer; empty: none has said anything, and all have answered.
std::string DecidingText(const LaunchersAnswers& answers, const RequestId& id);
// The same of the entries of `waits` alone.
std::string DecidingText(const boost::json::array& waits);

// Why the requests wait that have no nodes yet; nothing is asked when there are none. Logs which launchers
// gave no valid answer. `requests` outlives it.
Task<listing::Reasons> AskWhyRequestsWait(Context& context, const store::RequestCache& requests);

// All the reasons as text: a line for each pool that reported one.
std::string WaitText(const boost::json::array& waits);

// Adds the answer of one launcher, received at `now`. Error(kInvalid) if it is malformed.
void AddAnswer(LaunchersAnswers& answers, const std::string& hostname, std::string_view answer, WallTime now);

}  // namespace nodepool::cli
