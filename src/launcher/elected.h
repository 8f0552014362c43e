#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "launcher/context.h"
#include "zk/recipes/lock.h"

namespace nodepool::launcher {

// This launcher's name in elections, as other programs form it.
inline std::string Contender(const Context& context) {
  return fmt::format("{}-{}", context.hostname, getpid());
}

// Contends for ever; runs `lead` while this launcher is elected, and again in each term. `what` names, for
// the log, what the elected one does.
inline Task<> LeadWhenElected(zk::Election election, std::function<Task<>()> lead, std::string what,
                              log::Logger logger) {
  co_await election.RunForEver(std::move(lead), std::move(what), std::move(logger));
}

}  // namespace nodepool::launcher
