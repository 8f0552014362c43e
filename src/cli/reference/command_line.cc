#include "cli/reference/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"
#include "daemon/options.h"
#include "daemon/parse_arguments.h"

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

namespace {

// What is not declared, in troff.
constexpr std::string_view kSignals = R"(.SH SIGNALS
.TP
.BR SIGINT ", " SIGUSR1
End in good order: what is under way is finished or given back, for at most half a minute.
.TP
.B SIGTERM
Close the ZooKeeper session, which frees every lock, and end at once.
.TP
.B SIGHUP
Read the configuration again although no file changed, and open log files anew.
.TP
.B SIGUSR2
Log the stacks of all threads and every task, and switch the CPU profiler on or off.
)";

constexpr std::string_view kBackground = R"(.SH BACKGROUND
Without
.BR \-f " or " \-d
the program goes into the background: it works in the directory
.IR / ,
with a umask of at least 022, and holds the pid file as long as it runs.
The command that was called ends with status 0 once the configuration is read and the program runs, and with status 1
when that fails or another process holds the pid file for ten seconds.
A pid file that names a dead process is removed.
Nothing is forked when the parent is process 1 or standard input is a socket.
)";

constexpr std::string_view kSystemd = R"(.SH SYSTEMD
The program tells the service manager when it is ready, reloads and stops, what it is doing, and that its loop turns
.RB ( WatchdogSec= ).
When its output goes to the journal, messages are sent there with the fields
.BR NODEPOOL_EVENT ", " NODEPOOL_REQUEST " and " NODEPOOL_NODE .
)";

constexpr std::string_view kEnvironment = R"(.SH ENVIRONMENT
.TP
.BR STATSD_HOST ", " STATSD_PORT
Where metrics are sent.
.TP
.B NODEPOOL_DRIVERS_PATH
Directories of drivers, separated by colons, where
.B \-\-drivers\-dir
is not given.
.TP
.B NODEPOOL_CONFIG
The configuration, where
.B \-c
is not given.
.TP
.B NODEPOOL_PROFILE_DIR
Directory of a daemon where the files of profiles (SIGUSR2) stay; without it they are removed.
.TP
.BR NODEPOOL_ *
Can be named in the configuration as
.BR %(NODEPOOL_...) .
)";

constexpr std::string_view kDaemonStatus = R"(.SH EXIT STATUS
0 after an end by a signal, 1 when it cannot run, 2 after a wrong command line.
)";

constexpr std::string_view kToolStatus = R"(.SH EXIT STATUS
.TP
0
The command did what was asked.
.TP
1
It failed, or what it names does not exist; also without a command.
.TP
2
Wrong command line.
.TP
130
Interrupted.
)";

constexpr std::string_view kToolEnvironment = R"(.SH ENVIRONMENT
.TP
.B NODEPOOL_CONFIG
The configuration, where
.B \-c
is not given.
.TP
.B NO_COLOR
Not empty: no colors.
)";

constexpr std::string_view kToolFiles = R"(.SH FILES
.TP
.I /etc/nodepool/nodepool.yaml
The configuration, which is also that of the daemons.
)";

std::string DaemonFiles(std::string_view name) {
  return fmt::format(R"(.SH FILES
.TP
.I /etc/nodepool/nodepool.yaml
The configuration.
.TP
.I /var/run/nodepool/{0}.pid
The pid file, in the background.
.TP
.I /var/log/nodepool/{0}.log
The log, in the background.
)",
                     name);
}

int SectionOf(const std::string& name) { return name == "nodepool" ? 1 : 8; }

std::string PageName(const std::string& name) {
  std::string page = name;
  std::ranges::replace(page, ' ', '-');
  return page;
}

// Escaped text, with hyphens that can be copied.
std::string Escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  if (result.starts_with('.') || result.starts_with('\'')) result.insert(0, "\\&");
  return result;
}

std::string Sentence(std::string_view text) {
  std::string result = Escaped(text);
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z') result[0] = static_cast<char>(result[0] - 32);
  if (!result.empty() && result.back() != '.') result += '.';
  return result;
}

void AddOption(std::string& page, const OptionLine& option) {
  page += ".TP\n";
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + Escaped(name) + "\\fR");
  page += Join(names, ", ");
  if (!option.value.empty()) {
    if (!names.empty()) page += ' ';
    std::string value = "\\fI" + Escaped(option.value) + "\\fR";
    page += option.is_value_optional ? "[" + value + "]" : value;
  }
  page += '\n' + Sentence(option.help) + '\n';
  if (!option.choices.empty()) page += "One of " + Escaped(Join(option.choices, ", ")) + ".\n";
  if (!option.default_value.empty()) page += "Default: " + Escaped(option.default_value) + ".\n";
}

bool IsHelp(const OptionLine& option) { return option.names.back() == "--help"; }

// "[options] IMAGE", in troff.
std::string Usage(const CommandLine& command) {
  std::string usage;
  for (const OptionLine& option : command.options) {
    if (option.is_required)
      usage += fmt::format(" {} {}", Escaped(option.names.front()), Escaped(option.value));
  }
  bool has_more = std::ranges::any_of(
      command.options, [](const OptionLine& option) { return !option.is_required && !IsHelp(option); });
  if (has_more) usage += " [options]";
  for (const OptionLine& place : command.places) {
    std::string words =
        Escaped(place.value) + (place.is_repeated && place.value.find(' ') == std::string::npos ? "..." : "");
    usage += place.is_required ? " " + words : " [" + words + "]";
  }
  return usage;
}

void AddCommand(std::string& page, const CommandLine& command) {
  page += fmt::format(".SS {}\n", Escaped(command.name));
  page += fmt::format("\\fBnodepool {}\\fR{}\n.PP\n{}\n", Escaped(command.name), Usage(command),
                      Sentence(command.help));
  if (command.name == "standalone") {
    page += ".PP\nSee\n.BR nodepool\\-standalone (8).\n";
    return;
  }
  for (const OptionLine& place : command.places) AddOption(page, place);
  for (const OptionLine& option : command.options) {
    if (!IsHelp(option)) AddOption(page, option);
  }
}

std::string TextOf(const CommandLine& program) {
  if (program.name == "nodepool") return fmt::format("{}{}{}", kToolStatus, kToolEnvironment, kToolFiles);
  bool has_background = program.name != "nodepool standalone";
  std::string text = has_background ? std::string(kBackground) : "";
  text.append(kSignals).append(kSystemd).append(kEnvironment).append(kDaemonStatus);
  bool has_own_files = program.name == "nodepool-builder" || program.name == "nodepool-runners";
  if (has_background) text += DaemonFiles(has_own_files ? program.name : "nodepool");
  return text;
}

}  // namespace

int ManSection(const CommandLine& program) { return SectionOf(program.name); }

std::string ManPage(const CommandLine& program) {
  std::string name = PageName(program.name);
  std::string title = name;
  std::ranges::transform(title, title.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  std::string page = fmt::format(".TH {} {} \"\" \"Nodepool {}\" \"Nodepool\"\n", Escaped(title),
                                 SectionOf(program.name), Escaped(nodepool::Version()));
  std::string purpose = program.help;
  while (purpose.ends_with('.')) purpose.pop_back();
  page += fmt::format(".SH NAME\n{} \\- {}\n", Escaped(name), Escaped(purpose));
  page += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [options]{}\n", Escaped(program.name),
                      program.commands.empty() ? "" : " \\fIcommand\\fR [command options]");
  page += fmt::format(".SH DESCRIPTION\n{}\n", Sentence(program.help));
  page += ".SH OPTIONS\n";
  if (!program.commands.empty())
    page += "They may be before and behind the command.\nLong options may be shortened.\n";
  for (const OptionLine& option : program.options) AddOption(page, option);
  if (!program.commands.empty()) page += ".SH COMMANDS\n";
  for (const CommandLine& command : program.commands) AddCommand(page, command);
  page += TextOf(program);
  page += ".SH SEE ALSO\n";
  std::vector<std::string> others;
  for (const std::string other : {"nodepool", "nodepool-launcher", "nodepool-builder", "nodepool-runners",
                                  "nodepool-standalone", "nodepoold"}) {
    if (other != name) others.push_back(fmt::format("\\fB{}\\fR({})", Escaped(other), SectionOf(other)));
  }
  return page + Join(others, ",\n") + "\n";
}

}  // namespace nodepool::cli
