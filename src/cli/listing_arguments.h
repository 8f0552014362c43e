#pragma once

#include <functional>
#include <string>

#include "cli/invocation.h"
#include "cli/show_listing.h"

namespace nodepool::cli {

// Declares a command that shows what `make` returns once the arguments are known, with the options
// of all listings that make sense for it; its columns are the same with all arguments. Returns
// the command, for options of its own.
CLI::App* AddListing(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                     std::function<ListingCommand(Output)> make);

}  // namespace nodepool::cli
