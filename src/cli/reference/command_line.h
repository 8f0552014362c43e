#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace nodepool::cli {

// A command line as declared to the parser, for documentation and completion.
struct OptionLine {
  std::vector<std::string> names;    // "-c", "--detail"; empty: a positional argument
  std::string value;                 // its value: "FILE", or the name of a positional argument; empty: none
  std::vector<std::string> choices;  // the possible values, if they are limited
  std::string help;
  std::string default_value;  // empty: none, or not worth mentioning
  bool is_required = false;
  bool is_value_optional = false;
  bool is_repeated = false;
};

struct CommandLine {
  std::string name;  // "nodepool-launcher", "list"
  std::string help;
  std::vector<OptionLine> options;
  std::vector<OptionLine> places;  // positional arguments
  std::vector<CommandLine> commands;
};

// Without hidden options and commands.
CommandLine Describe(const CLI::App& app);

// All programs; `nodepool standalone` is a command of `nodepool`, and also the last program.
std::vector<CommandLine> AllPrograms();

// troff source of the manual page (man(7)).
std::string ManPage(const CommandLine& program);
// The manual section of the program: 1 or 8.
int ManSection(const CommandLine& program);

// To be sourced by the shell.
std::string BashCompletion(const CommandLine& program);
std::string ZshCompletion(const CommandLine& program);
std::string FishCompletion(const CommandLine& program);

}  // namespace nodepool::cli
