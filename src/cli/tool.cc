#include "cli/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "base/log/log_setup.h"
#include "base/scope_exit.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "config/logging/log_file.h"
#include "daemon/connection.h"
#include "daemon/parse_arguments.h"
#include "daemon/program.h"
#include "daemon/web_address.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "driver/loading/load_drivers.h"
#include "net/http/http.h"
#include "net/http/http_client.h"

namespace nodepool::cli {

ServerAwaiter::ServerAwaiter(Loop& loop, ServerWait wait, zk::WireOptions& options)
    : loop_(loop), wait_(std::move(wait)) {
  if (wait_.asked) return;
  options.on_trouble = [this](const std::string& why) {
    trouble_ = why;
    changed_.Set();
  };
}

Task<> ServerAwaiter::Await(zk::Client& client) {
  return wait_.asked ? AwaitAsAsked(client) : AwaitQuietly(client);
}

Task<> ServerAwaiter::AwaitQuietly(zk::Client& client) {
  Subscription watch = client.OnSession([this](zk::SessionState) { changed_.Set(); });
  SteadyTime deadline = loop_.SteadyNow() + wait_.usual;
  while (client.state() != zk::SessionState::kConnected) {
    if (client.state() == zk::SessionState::kClosed) throw daemon::RefusedForGood(wait_.servers);
    if (IsRefused()) throw NoServer(wait_.usual);
    changed_.Reset();
    bool has_changed = co_await EndsBy(loop_, deadline, "a connection to ZooKeeper", changed_.Wait());
    if (!has_changed) throw NoServer(wait_.usual);
  }
  Task<> check = daemon::CheckAdmission(client, wait_.servers);
  bool is_answered = co_await EndsBy(loop_, deadline, "an answer of ZooKeeper", std::move(check));
  if (!is_answered) throw NoServer(wait_.usual);
}

Task<> ServerAwaiter::AwaitAsAsked(zk::Client& client) {
  Duration limit = *wait_.asked;
  Task<> connection = daemon::AwaitConnection(loop_, client, wait_.servers);
  if (limit == Duration::max()) {
    co_await std::move(connection);
    co_return;
  }
  SteadyTime deadline = loop_.SteadyNow() + limit;
  bool is_there = co_await EndsBy(loop_, deadline, "a connection to ZooKeeper", std::move(connection));
  if (!is_there) throw NoServer(limit);
}

Error ServerAwaiter::NoServer(Duration waited) const {
  std::string reason = trouble_.empty() ? wait_.servers : trouble_;
  if (wait_.is_embedded) {
    return Error(
        Verdict::kFail,
        fmt::format("nodepool standalone does not run ({}); start it, or wait for it with --wait-for-server",
                    reason));
  }
  double seconds = std::chrono::duration<double>(waited).count();
  return Error(Verdict::kFail,
               fmt::format("no ZooKeeper server answered within {} s ({}); check zookeeper-servers, or "
                           "wait longer with --wait-for-server",
                           seconds, reason));
}

namespace {

// The tool's own messages have no time and no logger name; lines of the libraries look as in a log.
log::Setup UsualLogging() {
  log::Handler words;
  words.format = *log::LineFormat::Parse("nodepool: %(message)s", "", true);
  log::Setup setup;
  setup.handlers = {{"log", log::Handler()}, {"words", words}};
  setup.loggers[""] = {log::Level::kInfo, {"log"}};
  setup.loggers["nodepool.cmd.nodepoolcmd"] = {std::nullopt, {"words"}, false};
  setup.loggers["nodepool.zk"] = {log::Level::kWarning, {}};
  setup.loggers["nodepool.ComponentRegistry"] = {log::Level::kWarning, {}};
  return setup;
}

// What config-validate finds, on a terminal. Programs get lines of a log.
log::Setup PlainFindings(log::Setup setup) {
  log::Handler plain;
  plain.format = log::LineFormat::ForPeople();
  setup.handlers["findings"] = plain;
  setup.loggers["nodepool.cmd.config_validator"] = {std::nullopt, {"findings"}, false};
  return setup;
}

log::Setup AllTo(log::Handler::Kind kind) {
  log::Handler handler;
  handler.kind = kind;
  log::Setup setup;
  setup.handlers = {{"log", handler}};
  setup.loggers[""] = {log::Level::kDebug, {"log"}};
  return setup;
}

// Configures where messages go, and their format (operations.md 5.1). Error(kInvalid), beginning with the
// file name, if the logging file cannot be used; the default logging then stays in force.
void SetUpLogging(const Invocation& invocation) {
  bool is_for_people = invocation.validation && ::isatty(STDERR_FILENO) == 1;
  log::Apply(is_for_people ? PlainFindings(UsualLogging()) : UsualLogging());
  if (invocation.is_silent) return log::Apply(AllTo(log::Handler::Kind::kNull));
  if (invocation.is_debug) return log::Apply(AllTo(log::Handler::Kind::kStderr));
  if (!invocation.logging_path) return;
  Expected<log::Setup> setup = config::ReadLogFile(daemon::ExpandHome(*invocation.logging_path));
  if (!setup) throw setup.error();
  log::Apply(*setup);
}

constexpr int kInterrupted = 130;  // 128 + SIGINT, as in shells

const log::Logger& ToolLogger() {
  static const log::Logger logger("nodepool.cmd.nodepoolcmd");
  return logger;
}

Task<> Connect(Context& context, Random& random, ServerAwaiter& server, const Invocation& invocation) {
  co_await server.Await(context.store.tree.client());
  if (!invocation.needs_ensemble) {
    co_await daemon::CheckPlaceOfRecords(context.loop, random, context.config->common.zookeeper);
  }
}

Task<int> RunConnected(Context& context, Random& random, ServerAwaiter& server,
                       const Invocation& invocation) {
  Task<> connect = Connect(context, random, server, invocation);
  if (invocation.validation) {
    std::string servers = daemon::ServerNames(daemon::EffectiveZooKeeper(context.config->common.zookeeper));
    int status = co_await CheckOnline(context, std::move(servers), std::move(connect));
    co_return status;
  }
  co_await std::move(connect);
  int status = co_await invocation.command(context);
  co_return status;
}

// Leaves `outcome` empty when the command is interrupted.
Task<> Keep(Task<int> command, std::optional<Outcome<int>>& outcome) {
  Outcome<int> ended = co_await Attempt(std::move(command));
  outcome.emplace(std::move(ended));
}

// Cancels the group's tasks at the first signal; the second ends the process, without destructors.
void AwaitSignal(boost::asio::signal_set& signals, TaskGroup& tasks, int& interrupted_by) {
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (error) return;
    interrupted_by = number;
    tasks.CancelAll();
    signals.async_wait([](const boost::system::error_code& again, int) {
      if (!again) std::quick_exit(kInterrupted);
    });
  });
}

// Returns the exit status.
Task<int> RunCommand(Console& console, Task<int> command) {
  std::optional<Outcome<int>> outcome;
  TaskGroup tasks(console.loop, console.logger);
  boost::asio::signal_set signals(console.loop.context(), SIGINT, SIGTERM);
  AwaitSignal(signals, tasks, console.interrupted_by);
  tasks.Spawn("command", Keep(std::move(command), outcome));
  co_await tasks.Join();
  signals.cancel();
  if (!outcome) co_return kInterrupted;
  if (!*outcome) outcome->error().Rethrow();
  co_return **outcome;
}

Task<int> RunAndClose(Context& context, zk::Client& client, Task<int> command) {
  auto close = [&client] { return client.Close(); };
  int status = co_await WithCleanup(RunCommand(context, std::move(command)), close);
  co_return status;
}

constexpr Duration kLauncherTimeout = std::chrono::seconds(1);
constexpr std::size_t kLauncherAnswerLimit = 64 << 20;

// By the usual environment variables, among them that of https://no-color.org.
bool IsColorForbidden() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color != nullptr && *no_color != 0) || terminal == nullptr ||
         std::string_view(terminal) == "dumb";
}

// "alice@host": the user for whom requests are made and released.
std::string UserAtHost() {
  const passwd* entry = ::getpwuid(::getuid());
  std::string name = entry != nullptr ? entry->pw_name : std::to_string(::getuid());
  return name + "@" + daemon::WholeHostname();
}

std::optional<std::size_t> TerminalWidth() {
  ::winsize size{};
  bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::optional<std::size_t>(size.ws_col) : std::nullopt;
}

// Waits without blocking the loop, so that the session stays alive.
Task<std::string> ReadLine(Loop& loop) {
  constexpr std::size_t kLongest = 1000;
  std::string line;
  char next = 0;
  // Asio makes it non-blocking, which would also affect the shell afterwards.
  ScopeExit restore([flags = ::fcntl(STDIN_FILENO, F_GETFL)] { ::fcntl(STDIN_FILENO, F_SETFL, flags); });
  boost::asio::posix::stream_descriptor input(loop.context(), ::dup(STDIN_FILENO));
  while (line.size() < kLongest) {
    boost::system::error_code error;  // a file is always ready and cannot be waited for
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    co_await input.async_wait(boost::asio::posix::descriptor_base::wait_read, token);
    if (error == boost::asio::error::operation_aborted) throw boost::system::system_error(error);
    if (::read(STDIN_FILENO, &next, 1) != 1 || next == '\n') break;
    line += next;
  }
  co_return line;
}

// A completion must not wait longer.
constexpr Duration kSilentWait = std::chrono::seconds(1);

ServerWait ServerWaitOf(const Invocation& invocation, const config::ZooKeeperSettings& settings) {
  ServerWait wait;
  wait.asked = invocation.server_wait;
  if (invocation.is_silent) wait.usual = kSilentWait;
  wait.is_embedded = settings.servers.empty();
  wait.servers = daemon::ServerNames(daemon::EffectiveZooKeeper(settings));
  return wait;
}

Console ConsoleOf(Loop& loop, Random& random, std::ostream& out) {
  Console console{loop, random, out};
  console.user = UserAtHost();
  console.can_ask = ::isatty(STDIN_FILENO) == 1;
  console.is_terminal = &out == &std::cout && ::isatty(STDOUT_FILENO) == 1;
  console.wants_color = console.is_terminal && !IsColorForbidden();
  if (::isatty(STDERR_FILENO) == 1) console.progress = &std::cerr;
  if (console.is_terminal) console.terminal_width = &TerminalWidth;
  console.read_line = [&loop] { return ReadLine(loop); };
  return console;
}

int RunByServer(const Invocation& invocation, std::ostream& out) {
  Loop loop;
  SystemRandom random;
  Console console = ConsoleOf(loop, random, out);
  Task<int> command = invocation.server_command(console, invocation.server_wait);
  return RunToEnd(loop, RunCommand(console, std::move(command)));
}

int RunWithConfig(std::shared_ptr<const driver::LoadedConfig> loaded, const driver::Registry& drivers,
                  const Invocation& invocation, std::ostream& out) {
  const config::Config& config = loaded->common;
  Loop loop;
  SystemRandom random;
  config::ZooKeeperSettings zookeeper = daemon::EffectiveZooKeeper(config.zookeeper);
  zk::WireOptions connection = daemon::ConnectionOptions(zookeeper);
  ServerAwaiter server(loop, ServerWaitOf(invocation, config.zookeeper), connection);
  zk::WireClient client(loop, random, connection);
  store::Store store(loop, client, random);
  BlockingPool blocking_pool;
  Context context{ConsoleOf(loop, random, out), store, loaded};
  context.make_tools = [&](const ProviderName& name) {
    driver::ToolsEnvironment environment{{loop, random, blocking_pool}, store};
    return driver::CreateOperatorTools(drivers, environment, loaded->providers.at(name));
  };
  context.ask_launcher = [http = std::make_shared<net::CurlClient>(
                              loop, blocking_pool, fmt::format("nodepool/{}", nodepool::Version())),
                          web = config.webapp](LauncherAddress launcher, std::string target) {
    WebServer server_of_launcher = launcher.web.value_or(daemon::ConfiguredServer(web));
    std::string address = daemon::WebAddress(web, server_of_launcher, launcher.hostname, daemon::Hostname());
    return daemon::AskLauncher(http, {std::move(address), std::move(target), daemon::CaPath(web),
                                      kLauncherTimeout, kLauncherAnswerLimit});
  };
  context.abandon = [](std::shared_ptr<void> thing) {
    static auto& abandoned = *new std::vector<std::shared_ptr<void>>;
    abandoned.push_back(std::move(thing));
  };
  Task<int> command = RunConnected(context, random, server, invocation);
  return RunToEnd(loop, RunAndClose(context, client, std::move(command)));
}

// Records can be shown and changed without clouds, and while an operator corrects the file.
std::shared_ptr<const driver::LoadedConfig> LoadWhatIsNeeded(const Invocation& invocation,
                                                             const driver::Registry& drivers,
                                                             config::DriverSchemas others) {
  auto partial =
      driver::LoadWhatCanBe(invocation.config_path, invocation.secure_path, drivers, std::move(others));
  if (!partial) throw partial.error();
  if (partial->faults.empty()) return partial->loaded;
  const Error& first = partial->faults.front();
  if (invocation.needs_ensemble) throw first;
  std::size_t more = partial->faults.size() - 1;
  if (!invocation.is_silent) {
    ToolLogger().Warning("{}{}; going on with what can be read of the configuration", first.message(),
                         more == 0 ? "" : fmt::format(" ({} more; see nodepool config-validate)", more));
  }
  return partial->loaded;
}

}  // namespace

int RunTool(std::vector<std::string> arguments, driver::Registry& drivers, config::DriverSchemas others,
            std::ostream& out, std::ostream& err) {
  std::variant<Invocation, int> parsed = ParseArguments(std::move(arguments), out, err);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const Invocation& invocation = std::get<Invocation>(parsed);
  try {
    SetUpLogging(invocation);
    if (invocation.server_command) return RunByServer(invocation, out);
    daemon::AddOutsideDrivers(invocation.drivers_dirs, drivers, ToolLogger());
    if (invocation.validation) {
      auto ask_online = [&](std::shared_ptr<const driver::LoadedConfig> loaded) {
        return RunWithConfig(std::move(loaded), drivers, invocation, out);
      };
      return ConfigValidate(invocation, drivers, std::move(others), ask_online);
    }
    daemon::RequireConfig(invocation.config_path);
    std::shared_ptr<const driver::LoadedConfig> loaded =
        LoadWhatIsNeeded(invocation, drivers, std::move(others));
    for (const std::string& warning : loaded->common.warnings) ToolLogger().Debug("{}", warning);
    if (invocation.needs_ensemble && loaded->common.zookeeper.servers.empty()) {
      throw Error(Verdict::kInvalid,
                  fmt::format("{}: zookeeper-servers is missing, the other side of the copy",
                              invocation.config_path));
    }
    if (invocation.offline_command) return invocation.offline_command(*loaded, out);
    return RunWithConfig(loaded, drivers, invocation, out);
  } catch (const std::exception&) {
    ToolLogger().Error("{}", MessageOf(std::current_exception()));
    return 1;
  }
}

}  // namespace nodepool::cli
