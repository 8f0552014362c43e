#include "cli/reference/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.h"
#include "cli/reference/command_line.h"

namespace nodepool::cli {

namespace {

// What `nodepool complete` lists for a value of this name.
constexpr std::pair<std::string_view, std::string_view> kLists[] = {
    {"BUILD", "builds"},
    {"IMAGE", "images"},
    {"[PROVIDER] IMAGE", "images"},
    {"LABEL", "labels"},
    {"NODE", "nodes"},
    {"PROVIDER", "providers"},
    {"REQUEST-or-NODE", "requests-and-nodes"}};

}  // namespace

std::string_view ListOf(const OptionLine& option) {
  auto found = std::ranges::find(kLists, option.value, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kLists) ? "" : found->second;
}

Kind KindOf(const OptionLine& option) {
  if (!option.choices.empty()) return Kind::kChoices;
  if (!ListOf(option).empty()) return Kind::kList;
  // After an option whose value may be omitted, anything may follow.
  if (option.value.empty() || option.is_value_optional) return Kind::kNothing;
  if (option.value == "DIR") return Kind::kDirectory;
  return option.value == "FILE" ? Kind::kFile : Kind::kOther;
}

std::string Identifier(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == ' '; }, '_');
  return "_" + name;
}

std::string Quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> NamesOf(const CommandLine& command) {
  std::vector<std::string> names;
  for (const OptionLine& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

namespace {

// Options of the program are also accepted after its commands.
std::string BashCommand(const CommandLine& program, const std::string& name) {
  return name.empty() && !program.commands.empty() ? "*" : name;
}

// "list,-c|list,--x" with each option of the command of that name.
std::string BashPattern(const std::string& command, const OptionLine& option) {
  std::vector<std::string> patterns;
  for (const std::string& word : option.names) patterns.push_back(command + "," + word);
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

// The completions for the command's positional arguments.
std::string BashList(const CommandLine& command) {
  auto has_list = [](const OptionLine& place) { return KindOf(place) == Kind::kList; };
  auto found = std::ranges::find_if(command.places, has_list);
  return found == command.places.end() ? "" : std::string(ListOf(*found));
}

constexpr const char* kBashFiles = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"));";

// The completions after an option. Nothing: it takes no value.
std::string BashReply(const OptionLine& option) {
  constexpr const char* kWords = "COMPREPLY=($(compgen -W \"{}\" -- \"$current\"));";
  switch (KindOf(option)) {
    case Kind::kNothing:
      return "";
    case Kind::kFile:
      return kBashFiles;
    case Kind::kDirectory:
      return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\"));";
    case Kind::kChoices:
      return fmt::format(kWords, Join(option.choices, " "));
    case Kind::kList:
      return fmt::format(kWords, fmt::format("$(_nodepool_values {})", ListOf(option)));
    case Kind::kOther:
      return ":;";
  }
  return "";
}

// Groups the options with the same completions.
std::string BashReplies(const CommandLine& program) {
  std::map<std::string, std::vector<std::string>> patterns;
  ForEachCommand(program, [&](const std::string& name, const CommandLine& command) {
    for (const OptionLine& option : command.options) {
      std::string reply = BashReply(option);
      if (!reply.empty()) patterns[reply].push_back(BashPattern(BashCommand(program, name), option));
    }
  });
  std::string text;
  for (const auto& [reply, options] : patterns)
    text += fmt::format("    {}) {} return ;;\n", Join(options, "|"), reply);
  return text;
}

// Prints the values of a kind, using the configuration that the command line names.
constexpr std::string_view kBashValues = R"(_nodepool_values() {
  local i config=()
  for ((i = 1; i + 1 < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -c ]] && config=(-c "${COMP_WORDS[i+1]}")
  done
  "${COMP_WORDS[0]}" ${config[@]+"${config[@]}"} complete "$1" 2>/dev/null
}
)";

bool TakesFiles(const CommandLine& command) {
  return std::ranges::any_of(command.places,
                             [](const OptionLine& place) { return KindOf(place) == Kind::kFile; });
}

}  // namespace

std::string BashCompletion(const CommandLine& program) {
  std::string function = Identifier(program.name);
  std::string text = fmt::format("# Completion of {} for bash.\n{}() {{\n", program.name, function);
  text +=
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= options= "
      "words= list= i\n"
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
  text += "  case $command,$previous in\n" + BashReplies(program) + "  esac\n  case $command in\n";
  std::vector<std::string> with_files;
  ForEachCommand(program, [&](const std::string& name, const CommandLine& command) {
    std::vector<std::string> options = NamesOf(command);
    bool has_others = !name.empty() && name != "standalone";
    if (has_others) {
      std::vector<std::string> general = NamesOf(program);
      options.insert(options.end(), general.begin(), general.end());
    }
    text += fmt::format("    {}) options={} words={} list={} ;;\n", Quoted(name), Quoted(Join(options, " ")),
                        Quoted(BashWords(command)), Quoted(BashList(command)));
    if (TakesFiles(command)) with_files.push_back(name);
  });
  text +=
      "  esac\n  if [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n "
      "   "
      "return\n  fi\n";
  if (!with_files.empty())
    text +=
        fmt::format("  case $command in\n    {}) {} return ;;\n  esac\n", Join(with_files, "|"), kBashFiles);
  text +=
      "  [[ -z $list ]] || words+=\" $(_nodepool_values \"$list\")\"\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n";
  if (!program.commands.empty()) text += kBashValues;
  return text + fmt::format("complete -F {} {}\n", function, program.name);
}

namespace {

constexpr std::string_view kFishValues = R"(function __nodepool_values
  set -l words (commandline -opc)
  set -l config
  if set -l place (contains -i -- -c $words)
    set config -c $words[(math $place + 1)]
  end
  command $words[1] $config complete $argv 2>/dev/null
end
)";

}  // namespace

std::string FishCompletion(const CommandLine& program) {
  std::string text =
      fmt::format("# Completion of {} for fish.\ncomplete -c {} -f\n", program.name, program.name);
  if (!program.commands.empty()) text += kFishValues;
  ForEachCommand(program, [&](const std::string& name, const CommandLine& command) {
    std::string condition;
    if (!name.empty()) condition = " -n " + Quoted("__fish_seen_subcommand_from " + name);
    if (name.empty() && !program.commands.empty()) condition = " -n __fish_use_subcommand";
    std::string general = condition;
    if (name.empty() && !program.commands.empty())
      general = " -n " + Quoted("not __fish_seen_subcommand_from standalone");
    std::string prefix = fmt::format("complete -c {}{}", program.name, condition);
    for (const CommandLine& sub : command.commands) {
      text += fmt::format("{} -a {} -d {}\n", prefix, sub.name, Quoted(sub.help));
    }
    for (const OptionLine& option : command.options) {
      text += fmt::format("complete -c {}{}", program.name, general);
      for (const std::string& word : option.names) {
        text += word.starts_with("--") ? " -l " + word.substr(2) : " -s " + word.substr(1);
      }
      Kind kind = KindOf(option);
      if (kind != Kind::kNothing) text += " -x";
      if (kind == Kind::kFile) text += " -a '(__fish_complete_path)'";
      if (kind == Kind::kDirectory) text += " -a '(__fish_complete_directories)'";
      if (kind == Kind::kChoices) text += " -a " + Quoted(Join(option.choices, " "));
      if (kind == Kind::kList) text += " -a " + Quoted(fmt::format("(__nodepool_values {})", ListOf(option)));
      text += " -d " + Quoted(option.help) + "\n";
    }
    for (const OptionLine& place : command.places) {
      if (KindOf(place) == Kind::kFile) text += prefix + " -F\n";
      if (!place.choices.empty()) text += fmt::format("{} -a {}\n", prefix, Quoted(Join(place.choices, " ")));
      if (KindOf(place) == Kind::kList)
        text +=
            fmt::format("{} -a {}\n", prefix, Quoted(fmt::format("(__nodepool_values {})", ListOf(place))));
    }
  });
  return text;
}

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
