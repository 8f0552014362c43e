#pragma once

#include <functional>
#include <string>

#include "launcher/context.h"
#include "launcher/provider_manager.h"

namespace nodepool::launcher {

// Locks the unlocked node of a provider of this launcher and marks it `deleting` if `applies` is still true
// of its record; counts it as `kind` and logs why. Does nothing while another process, or a request of this
// one, has the node. All arguments outlive it.
Task<> MarkDeleting(Context& context, const ProviderManager& providers, const log::Logger& logger, NodeId id,
                    std::string kind, std::string why, std::function<bool(const Node&)> applies);

}  // namespace nodepool::launcher
