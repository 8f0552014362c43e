#pragma once

#include <optional>
#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool provider-pause PROVIDER [--reason TEXT] [--drain]` (http-actions.md 1): every launcher stops to
// take requests for the provider; with `is_drained` its unused nodes are deleted, too. Status 1: no such
// provider is configured.
Task<int> PauseProvider(Context& context, ProviderName provider, std::optional<std::string> reason,
                        bool is_drained);

// `nodepool provider-unpause PROVIDER`, also of a provider that is not configured any more. One that is not
// paused is only reported.
Task<int> UnpauseProvider(Context& context, ProviderName provider);

}  // namespace nodepool::cli
