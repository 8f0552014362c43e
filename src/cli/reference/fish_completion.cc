#include <fmt/format.h>

#include "base/text.h"
#include "cli/reference/command_line.h"
#include "cli/reference/completion_parts.h"

namespace nodepool::cli {
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

}  // namespace nodepool::cli
