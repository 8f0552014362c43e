#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/reference/command_line.h"
#include "cli/reference/completion_parts.h"

namespace nodepool::cli {
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

}  // namespace nodepool::cli
