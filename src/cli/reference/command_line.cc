#include "cli/reference/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cli/arguments.h"
#include "daemon/builder_options.h"
#include "daemon/help_format.h"
#include "daemon/launcher_options.h"
#include "daemon/runners_options.h"
#include "daemon/standalone_options.h"

namespace nodepool::cli {
namespace {

// CLI11 writes type and checks as "TYPE:CHECK", choices as "{a,b}".
OptionLine DescribeOption(const CLI::Option& option) {
  OptionLine line;
  for (const std::string& name : option.get_snames()) line.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) line.names.push_back("--" + name);
  std::string type = option.get_type_name();
  if (std::size_t open = type.find('{'); open != std::string::npos) {
    line.choices = Split(type.substr(open + 1, type.find('}') - open - 1), ',');
  }
  bool is_flag = option.get_expected_max() == 0;
  if (!is_flag) line.value = type.substr(0, type.find(':'));
  if (option.get_positional()) line.value = daemon::NameOfPositional(option);
  line.help = option.get_description();
  if (!is_flag) line.default_value = option.get_default_str();
  line.is_required = option.get_required();
  line.is_value_optional = !is_flag && !option.get_positional() && option.get_expected_min() == 0;
  line.is_repeated = option.get_expected_max() > 1;
  return line;
}

}  // namespace

CommandLine Describe(const CLI::App& app) {
  CommandLine line{app.get_name(), app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? line.places : line.options).push_back(DescribeOption(*option));
  }
  auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_shown)) {
    line.commands.push_back(Describe(*command));
  }
  return line;
}

std::vector<CommandLine> AllPrograms() {
  daemon::LauncherOptions launcher;
  daemon::BuilderOptions builder;
  daemon::RunnersOptions runners;
  daemon::StandaloneOptions nodepoold = daemon::NodepooldDefaults();
  daemon::StandaloneOptions standalone = daemon::StandaloneDefaults();
  CommandLine tool;
  DescribeTool([&tool](const CLI::App& app) { tool = Describe(app); });
  std::vector<CommandLine> programs = {tool,
                                       Describe(*LauncherApp(launcher)),
                                       Describe(*BuilderApp(builder)),
                                       Describe(*RunnersApp(runners)),
                                       Describe(*NodepooldApp(nodepoold)),
                                       Describe(*StandaloneApp(standalone))};
  // The arguments after it are read by its own parser.
  for (CommandLine& command : programs.front().commands) {
    if (command.name == "standalone") command.options = programs.back().options;
  }
  return programs;
}

}  // namespace nodepool::cli
