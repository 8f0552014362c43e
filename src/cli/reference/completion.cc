#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/reference/command_line.h"

namespace nodepool::cli {
namespace {

enum class Kind { kNothing, kFile, kDirectory, kChoices, kOther };

Kind KindOf(const OptionLine& option) {
  if (!option.choices.empty()) return Kind::kChoices;
  // What may stand without a value is followed by anything.
  if (option.value.empty() || option.is_value_optional) return Kind::kNothing;
  if (option.value == "DIR") return Kind::kDirectory;
  return option.value == "FILE" || option.value == "path" ? Kind::kFile : Kind::kOther;
}

// A name for functions of the shell.
std::string Identifier(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == ' '; }, '_');
  return "_" + name;
}

// Between single quotes, for any of the shells.
std::string Quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

template <class Function>
void ForEachCommand(const CommandLine& program, Function function) {
  function(std::string(), program);
  for (const CommandLine& command : program.commands) function(command.name, command);
}

std::vector<std::string> NamesOf(const CommandLine& command) {
  std::vector<std::string> names;
  for (const OptionLine& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// --- bash -----------------------------------------------------------------------------

// "list,-c|list,--x": the options of a kind with the command they belong to.
std::string BashPatterns(const CommandLine& program, Kind kind) {
  std::vector<std::string> patterns;
  ForEachCommand(program, [&](const std::string& name, const CommandLine& command) {
    for (const OptionLine& option : command.options) {
      if (KindOf(option) != kind) continue;
      for (const std::string& word : option.names) patterns.push_back(name + "," + word);
    }
  });
  return Join(patterns, "|");
}

std::string BashWords(const CommandLine& command) {
  std::vector<std::string> words;
  for (const CommandLine& sub : command.commands) words.push_back(sub.name);
  for (const OptionLine& place : command.places) {
    words.insert(words.end(), place.choices.begin(), place.choices.end());
  }
  return Join(words, " ");
}

bool TakesFiles(const CommandLine& command) {
  return std::ranges::any_of(command.places,
                             [](const OptionLine& place) { return KindOf(place) == Kind::kFile; });
}

// --- zsh -------------------------------------------------------------------------------

std::string ZshAction(const OptionLine& option) {
  switch (KindOf(option)) {
    case Kind::kFile:
      return "_files";
    case Kind::kDirectory:
      return "_files -/";
    case Kind::kChoices:
      return "(" + Join(option.choices, " ") + ")";
    default:
      return " ";
  }
}

std::string ZshText(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']' || text[i] == ':') text.insert(i++, 1, '\\');
  }
  return text;
}

std::string ZshArguments(const CommandLine& command) {
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
  for (const OptionLine& place : command.places) {
    text += " " + Quoted(fmt::format("{}:{}:{}", place.is_repeated ? "*" : "", ZshText(place.value),
                                     ZshAction(place)));
  }
  return text;
}

}  // namespace

std::string BashCompletion(const CommandLine& program) {
  std::string function = Identifier(program.name);
  std::string text = fmt::format("# Completion of {} for bash.\n{}() {{\n", program.name, function);
  text +=
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= options= "
      "words= i\n"
      "  COMPREPLY=()\n";
  std::vector<std::string> with_value;
  for (const OptionLine& option : program.options) {
    if (!option.value.empty()) with_value.insert(with_value.end(), option.names.begin(), option.names.end());
  }
  if (!program.commands.empty()) {
    text += fmt::format(
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${{COMP_WORDS[i]}} in\n      {}) ((i++)) ;;\n"
        "      -*) ;;\n      *) command=${{COMP_WORDS[i]}}; break ;;\n    esac\n  done\n",
        Join(with_value, "|"));
  }
  text += "  case $command,$previous in\n";
  auto answer = [&](Kind kind, const char* reply) {
    std::string patterns = BashPatterns(program, kind);
    if (!patterns.empty()) text += fmt::format("    {}) {} return ;;\n", patterns, reply);
  };
  constexpr const char* kFiles = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"));";
  answer(Kind::kFile, kFiles);
  answer(Kind::kDirectory, "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\"));");
  answer(Kind::kOther, "");
  text += "  esac\n  case $command in\n";
  std::vector<std::string> with_files;
  ForEachCommand(program, [&](const std::string& name, const CommandLine& command) {
    text += fmt::format("    {}) options={} words={} ;;\n", Quoted(name), Quoted(Join(NamesOf(command), " ")),
                        Quoted(BashWords(command)));
    if (TakesFiles(command)) with_files.push_back(name);
  });
  text +=
      "  esac\n  if [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n "
      "   "
      "return\n  fi\n";
  if (!with_files.empty())
    text += fmt::format("  case $command in\n    {}) {} return ;;\n  esac\n", Join(with_files, "|"), kFiles);
  text += "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n";
  return text + fmt::format("complete -F {} {}\n", function, program.name);
}

std::string ZshCompletion(const CommandLine& program) {
  std::string function = Identifier(program.name);
  std::string text = fmt::format("#compdef {}\n{}() {{\n", program.name, function);
  if (program.commands.empty()) {
    text += fmt::format("  _arguments -s{}\n", ZshArguments(program));
  } else {
    text += fmt::format(
        "  local curcontext=$curcontext state line\n  local -a commands\n  _arguments -C{} "
        "'1:command:->command' "
        "'*::argument:->argument'\n  case $state in\n    command)\n      commands=(",
        ZshArguments(program));
    for (const CommandLine& command : program.commands) {
      text += "\n        " + Quoted(command.name + ":" + command.help);
    }
    text += ")\n      _describe command commands ;;\n    argument)\n      case $words[1] in\n";
    for (const CommandLine& command : program.commands) {
      text += fmt::format("        {}) _arguments{} ;;\n", command.name, ZshArguments(command));
    }
    text += "      esac ;;\n  esac\n";
  }
  return text + fmt::format("}}\n{} \"$@\"\n", function);
}

std::string FishCompletion(const CommandLine& program) {
  std::string text =
      fmt::format("# Completion of {} for fish.\ncomplete -c {} -f\n", program.name, program.name);
  ForEachCommand(program, [&](const std::string& name, const CommandLine& command) {
    std::string condition;
    if (!name.empty()) condition = " -n " + Quoted("__fish_seen_subcommand_from " + name);
    if (name.empty() && !program.commands.empty()) condition = " -n __fish_use_subcommand";
    std::string prefix = fmt::format("complete -c {}{}", program.name, condition);
    for (const CommandLine& sub : command.commands) {
      text += fmt::format("{} -a {} -d {}\n", prefix, sub.name, Quoted(sub.help));
    }
    for (const OptionLine& option : command.options) {
      text += prefix;
      for (const std::string& word : option.names) {
        text += word.starts_with("--") ? " -l " + word.substr(2) : " -s " + word.substr(1);
      }
      Kind kind = KindOf(option);
      if (kind != Kind::kNothing) text += " -x";
      if (kind == Kind::kFile) text += " -a '(__fish_complete_path)'";
      if (kind == Kind::kDirectory) text += " -a '(__fish_complete_directories)'";
      text += " -d " + Quoted(option.help) + "\n";
    }
    for (const OptionLine& place : command.places) {
      if (KindOf(place) == Kind::kFile) text += prefix + " -F\n";
      if (!place.choices.empty()) text += fmt::format("{} -a {}\n", prefix, Quoted(Join(place.choices, " ")));
    }
  });
  return text;
}

}  // namespace nodepool::cli
