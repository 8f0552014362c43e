#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Whether a command may change what the rows show: one alone, with `is_confirmed` (the option --yes), or
// after `y` at a terminal that has shown them. False: after a message. `verb` and `nouns` name the change and
// the rows: "delete", "nodes".
Task<bool> MayChange(Context& context, const listing::Listing& rows, bool is_confirmed, std::string verb,
                     std::string nouns);

}  // namespace nodepool::cli
