#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/reference/command_line.h"

namespace nodepool::cli {

// What the completions of all shells have in common.

// What follows an option, or is at a positional argument.
enum class Kind {
  kNothing,
  kFile,
  kDirectory,
  kChoices,
  kList,   // what `nodepool complete` lists
  kOther,  // not completed
};

Kind KindOf(const OptionLine& option);
// The name of the list for kList.
std::string_view ListOf(const OptionLine& option);

// A valid name for shell functions.
std::string Identifier(std::string name);
// In single quotes, for any of the shells.
std::string Quoted(std::string_view text);
// The names of the command's options.
std::vector<std::string> NamesOf(const CommandLine& command);

// Calls the function with the program, with an empty name, and with each of its commands.
template <class Function>
void ForEachCommand(const CommandLine& program, Function function) {
  function(std::string(), program);
  for (const CommandLine& command : program.commands) function(command.name, command);
}

}  // namespace nodepool::cli
