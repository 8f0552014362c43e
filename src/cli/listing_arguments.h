#pragma once

#include <functional>
#include <string>

#include "cli/invocation.h"
#include "cli/show_listing.h"

namespace nodepool::cli {

// Declares a command that shows what `make` returns after parsing, with all listing options that apply to it;
// its columns must not depend on the arguments. Returns the command, so that the caller can add options.
CLI::App* AddListing(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                     std::function<ListingCommand(Output)> make);

}  // namespace nodepool::cli
