#include "cli/reference/completion_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

}  // namespace nodepool::cli
