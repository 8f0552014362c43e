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

// The same with --detail, whose help is `detail_help`. In detail a listing has the columns that it has
// otherwise, and more, which --output may name without --detail, too.
CLI::App* AddDetailedListing(CLI::App& app, Invocation& invocation, const std::string& name,
                             const std::string& help, const std::string& detail_help,
                             std::function<ListingCommand(Output, bool is_detailed)> make);

}  // namespace nodepool::cli
