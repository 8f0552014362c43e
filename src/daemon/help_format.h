#pragma once

#include <memory>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class FormatterBase;
class Option;
}  // namespace CLI

namespace nodepool::daemon {

// How --help shows a command line: in 80 columns, with defaults and choices behind the help.
std::shared_ptr<CLI::FormatterBase> HelpFormat();

// How help and manual pages name a positional argument: as its type, where it has one. No positional has the
// name of an option of its command: newer releases of CLI11 refuse that.
std::string NameOfPositional(const CLI::Option& option);

}  // namespace nodepool::daemon
