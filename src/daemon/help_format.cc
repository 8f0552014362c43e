#include "daemon/help_format.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace nodepool::daemon {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNames = 26;  // columns in front of the help

// The words in lines of at most `width` columns, the second and later ones indented.
std::string Wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  for (const std::string& word : Split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) result += ' ';
    result += word;
    column += word.size() + (column > 0 ? 1 : 0);
  }
  return result;
}

std::string Entry(const std::string& name, const std::string& help) {
  std::string line = "  " + name;
  line += line.size() + 2 > kNames ? "\n" + std::string(kNames, ' ') : std::string(kNames - line.size(), ' ');
  return line + Wrapped(help, kWidth - kNames, kNames) + "\n";
}

// "-d, --debug"
std::string NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return Join(names, ", ");
}

// CLI11 writes type and checks as "TYPE:CHECK", choices as "{a,b}".
std::string TypeOf(const CLI::Option& option) {
  std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string ValueOf(const CLI::Option& option) {
  bool is_flag = option.get_expected_max() == 0;
  std::string type = TypeOf(option);
  if (is_flag || type.empty()) return "";
  return option.get_expected_min() == 0 ? " [" + type + "]" : " " + type;
}

std::string HelpOf(const CLI::Option& option) {
  std::string help = option.get_description();
  bool has_default = option.get_expected_max() > 0 && !option.get_default_str().empty();
  if (has_default) help += fmt::format(" (default: {})", option.get_default_str());
  return help;
}

class Format : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = is_positional ? NameOfPositional(*option) : NamesOf(*option) + ValueOf(*option);
    return Entry(name, HelpOf(*option));
  }
  std::string make_option_usage(const CLI::Option* positional) const override {
    std::string name = NameOfPositional(*positional);
    bool is_repeated = positional->get_expected_max() > 1 && name.find(' ') == std::string::npos;
    if (is_repeated) name += "...";
    return positional->get_required() ? name : "[" + name + "]";
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), kWidth, 0) + "\n";
  }
};

}  // namespace

std::string NameOfPositional(const CLI::Option& option) {
  std::string type = TypeOf(option);
  return type.empty() ? option.get_name(true) : type;
}

std::shared_ptr<CLI::FormatterBase> HelpFormat() {
  auto format = std::make_shared<Format>();
  format->label("SUBCOMMAND", "COMMAND");
  return format;
}

}  // namespace nodepool::daemon
