#pragma once

#include <memory>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class FormatterBase;
}

namespace nodepool::daemon {

// How --help shows a command line: in 80 columns, with defaults and choices behind the help.
std::shared_ptr<CLI::FormatterBase> HelpFormat();

}  // namespace nodepool::daemon
