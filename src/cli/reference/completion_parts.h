#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/reference/command_line.h"

// What the completions of all shells are made of.
namespace nodepool::cli {

// What comes behind an option, or at a place.
enum class Kind {
  kNothing,
  kFile,
  kDirectory,
  kChoices,
  kList,   // what `nodepool complete` lists
  kOther,  // the user's business
};

Kind KindOf(const OptionLine& option);
// The name of the list for kList.
std::string_view ListOf(const OptionLine& option);

// A name for functions of the shell.
std::string Identifier(std::string name);
// Between single quotes, for any of the shells.
std::string Quoted(std::string_view text);
// Of the command's options.
std::vector<std::string> NamesOf(const CommandLine& command);

// Calls with the program, whose name is empty then, and with each of its commands.
template <class Function>
void ForEachCommand(const CommandLine& program, Function function) {
  function(std::string(), program);
  for (const CommandLine& command : program.commands) function(command.name, command);
}

}  // namespace nodepool::cli
