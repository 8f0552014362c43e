#pragma once

#include <boost/json/array.hpp>
#include <map>
#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Why requests wait, as the launchers say: for each request the entries of `waits`
// (docs/reference/api.md), each with the `launcher` that said it.
using WaitsByRequest = std::map<RequestId, boost::json::array>;

// Asks the web server of every registered launcher, all at once. One that gives no
// good answer is named in the log and left out.
Task<WaitsByRequest> AskWhyRequestsWait(Context& context);

// The reasons for a person: one line for each pool that said why.
std::string WaitText(const boost::json::array& waits);

// Adds what one launcher answered. Error(kInvalid): it is no such answer.
void AddWaits(WaitsByRequest& waits, const std::string& hostname, std::string_view answer);

}  // namespace nodepool::cli
