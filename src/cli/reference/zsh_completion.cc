#include <fmt/format.h>

#include "base/text.h"
#include "cli/reference/command_line.h"
#include "cli/reference/completion_parts.h"

namespace nodepool::cli {
namespace {

std::string ZshAction(const OptionLine& option) {
  switch (KindOf(option)) {
    case Kind::kFile:
      return "_files";
    case Kind::kDirectory:
      return "_files -/";
    case Kind::kChoices:
      return "(" + Join(option.choices, " ") + ")";
    case Kind::kList:
      return fmt::format(" _nodepool_values {}", ListOf(option));
    default:
      return " ";
  }
}

// `config` is set before the command's own arguments are read; after the command, -c counts, too.
constexpr std::string_view kZshValues = R"zsh(}
_nodepool_values() {
  local -a values
  local file=${(Q)opt_args[-c]:-$config}
  values=(${(f)"$(command $service ${file:+-c} ${file:+$file} complete $1 2>/dev/null)"})
  compadd -a values
)zsh";

std::string ZshText(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']' || text[i] == ':') text.insert(i++, 1, '\\');
  }
  return text;
}

std::string ZshOptions(const CommandLine& command) {
  std::string text;
  for (const OptionLine& option : command.options) {
    std::string value = option.value.empty() ? ""
                                             : fmt::format("{}{}:{}", option.is_value_optional ? "::" : ":",
                                                           ZshText(option.value), ZshAction(option));
    for (const std::string& name : option.names) {
      text += " " + Quoted(fmt::format("{}{}[{}]{}", option.is_repeated ? "*" : "", name,
                                       ZshText(option.help), value));
    }
  }
  return text;
}

std::string ZshArguments(const CommandLine& command) {
  std::string text = ZshOptions(command);
  for (const OptionLine& place : command.places) {
    text += " " + Quoted(fmt::format("{}:{}:{}", place.is_repeated ? "*" : "", ZshText(place.value),
                                     ZshAction(place)));
  }
  return text;
}

}  // namespace

std::string ZshCompletion(const CommandLine& program) {
  std::string function = Identifier(program.name);
  std::string text = fmt::format("#compdef {}\n{}() {{\n", program.name, function);
  if (program.commands.empty()) {
    text += fmt::format("  _arguments -s{}\n", ZshArguments(program));
  } else {
    text += fmt::format(
        "  local curcontext=$curcontext state line config\n  local -a commands\n  local -A opt_args\n  "
        "_arguments "
        "-C{} "
        "'1:command:->command' "
        "'*::argument:->argument'\n  config=${{(Q)opt_args[-c]}}\n  case $state in\n    command)\n      "
        "commands=(",
        ZshArguments(program));
    for (const CommandLine& command : program.commands) {
      text += "\n        " + Quoted(command.name + ":" + command.help);
    }
    text += ")\n      _describe command commands ;;\n    argument)\n      case $words[1] in\n";
    for (const CommandLine& command : program.commands) {
      std::string general = command.name == "standalone" ? "" : ZshOptions(program);
      text += fmt::format("        {}) _arguments{}{} ;;\n", command.name, ZshArguments(command), general);
    }
    text += "      esac ;;\n  esac\n";
  }
  if (!program.commands.empty()) text += kZshValues;
  return text + fmt::format("}}\n{} \"$@\"\n", function);
}

}  // namespace nodepool::cli
