#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::cli {

// A command line as it is declared to the parser, for those who describe it.
struct OptionLine {
  std::vector<std::string> names;    // "-c", "--detail"; empty: stands by its place
  std::string value;                 // what it takes: "FILE", or the name of a place; empty: nothing
  std::vector<std::string> choices;  // that there are for the value, where it is one of a few
  std::string help;
  std::string default_value;  // empty: none, or nothing worth telling
  bool is_required = false;
  bool is_value_optional = false;
  bool is_repeated = false;
};

struct CommandLine {
  std::string name;  // "nodepool-launcher", "list"
  std::string help;
  std::vector<OptionLine> options;
  std::vector<OptionLine> places;  // what stands by its place
  std::vector<CommandLine> commands;
};

// Without what is hidden.
CommandLine Describe(const CLI::App& app);

// The programs; `nodepool standalone` is a command of `nodepool`, and also the last.
std::vector<CommandLine> AllPrograms();

// troff source of the manual page (man(7)).
std::string ManPage(const CommandLine& program);
// The section it belongs into: 1 or 8.
int ManSection(const CommandLine& program);

// To be sourced by the shell.
std::string BashCompletion(const CommandLine& program);
std::string ZshCompletion(const CommandLine& program);
std::string FishCompletion(const CommandLine& program);

}  // namespace nodepool::cli
