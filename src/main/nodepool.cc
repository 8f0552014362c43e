#include "main/nodepool.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "async/task_group.h"
#include "base/log/log_setup.h"
#include "base/small_file.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/tool.h"
#include "daemon/program.h"
#include "daemon/runtime.h"
#include "daemon/web_address.h"
#include "driver/loading/load_drivers.h"
#include "main/builtin_drivers.h"
#include "main/standalone.h"

namespace nodepool {

namespace {

// Of the only trial in this process.
std::string& StateFolder() {
  static auto& folder = *new std::string;
  return folder;
}

void RemoveStateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(StateFolder(), ignored);
}

// Removed at the end of the process, also by SIGTERM. Error(kFail).
void MakeStateFolder() {
  StateFolder() = std::filesystem::temp_directory_path() / "nodepool-try-XXXXXX";
  if (::mkdtemp(StateFolder().data()) == nullptr)
    throw Error(Verdict::kFail, fmt::format("{} cannot be made: {}", StateFolder(), std::strerror(errno)));
  std::atexit(&RemoveStateFolder);
  std::at_quick_exit(&RemoveStateFolder);
}

int FreePort() {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor acceptor(context, {boost::asio::ip::address_v4::loopback(), 0});
  return acceptor.local_endpoint().port();
}

struct OwnServers {
  config::EmbeddedZooKeeper zookeeper;
  config::WebAppSettings web;
};

OwnServers ChooseServers() {
  OwnServers own;
  own.zookeeper.state_dir = StateFolder();
  own.zookeeper.port = FreePort();
  own.web.listen_address = "127.0.0.1";
  own.web.port = FreePort();
  return own;
}

void UseOwnServers(const OwnServers& own, config::Config& config) {
  config.zookeeper = {.embedded = own.zookeeper};
  config.webapp = own.web;
}

// Warnings as in a log, and what is found out as plain lines.
log::Setup UsualLogging() {
  log::Handler findings;
  findings.kind = log::Handler::Kind::kStdout;
  findings.format = log::LineFormat::ForPeople();
  log::Setup setup;
  setup.handlers = {{"log", log::Handler()}, {"findings", findings}};
  setup.loggers[""] = {log::Level::kWarning, {"log"}};
  setup.loggers["nodepool.cmd.config_validator"] = {log::Level::kInfo, {"findings"}, false};
  return setup;
}

// Says where the page is, and asks the clouds.
class Findings : public daemon::Part {
 public:
  Findings(daemon::Runtime& runtime, zk::Client& client, std::string page)
      : runtime_(runtime),
        page_(std::move(page)),
        config_(runtime.config),
        store_(runtime.loop, client, runtime.random),
        tasks_(runtime.loop, runtime.logger) {}

  void Prepare() override {
    std::cout
        << "The page: " << page_ << "\n"
        << "Nothing is launched, deleted, built or uploaded; the file's zookeeper-servers and webapp are "
           "not used. Ctrl-C ends it."
        << std::endl;
  }
  Task<> Start() override {
    Ask();
    co_return;
  }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    config_ = std::move(config);
    Ask();
  }
  Task<> Stop() override { return tasks_.Stop(); }

 private:
  void Ask() { tasks_.Spawn("ask the clouds", AskClouds(config_)); }
  Task<> AskClouds(std::shared_ptr<const driver::LoadedConfig> config) {
    auto make = [this, config](const ProviderName& name) {
      driver::ToolsEnvironment environment{{runtime_.loop, runtime_.random, runtime_.blocking_pool}, store_};
      return driver::CreateOperatorTools(runtime_.drivers, environment, config->providers.at(name));
    };
    co_await cli::CheckProviders(runtime_.loop, config, make);
  }

  daemon::Runtime& runtime_;
  const std::string page_;
  std::shared_ptr<const driver::LoadedConfig> config_;
  store::Store store_;
  TaskGroup tasks_;
};

}  // namespace

int TryRun(daemon::StandaloneOptions options) {
  options.is_without_builder = options.is_without_launches = options.is_without_deletes = true;
  options.usual_logging = UsualLogging();
  for (const char* name : {"STATSD_HOST", "STATSD_PORT"}) ::unsetenv(name);
  try {
    MakeStateFolder();
    OwnServers own = ChooseServers();
    daemon::Program program = StandaloneProgram("nodepool standalone", options);
    program.has_zookeeper = true;
    program.adjust = [&own](config::Config& config) { UseOwnServers(own, config); };
    program.make_parts = [&, make_parts = std::move(program.make_parts)](auto& runtime, auto& client) {
      daemon::Parts parts = make_parts(runtime, client);
      parts.push_back(std::make_unique<Findings>(runtime, client, daemon::WebAddress(own.web, "", "")));
      return parts;
    };
    return RunDaemon(program, options);
  } catch (const Error& error) {
    std::cerr << "nodepool standalone: " << error.message() << "\n";
    return 1;
  }
}

namespace {

// `arguments` begin with "standalone".
int RunStandalone(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  daemon::StandaloneOptions options = daemon::StandaloneDefaults();
  int argc = static_cast<int>(argv.size());
  if (auto status = daemon::ParseOptions(argc, argv.data(), *StandaloneApp(options), options)) return *status;
  if (options.is_trial) return TryRun(options);
  daemon::Program program = StandaloneProgram("nodepool standalone", options);
  program.has_zookeeper = true;
  return RunDaemon(program, options);
}

int RunCommand(std::vector<std::string> arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  CheckedOutput output(std::cout);
  int status = cli::RunTool(std::move(arguments), drivers, KnownDriverSchemas(), std::cout, std::cerr);
  return output.Finish("nodepool", status, std::cerr);
}

}  // namespace

}  // namespace nodepool

// The tool's options may be before the command, too.
int main(int argc, char** argv) {
  std::vector<std::string> arguments = nodepool::cli::WithoutHelpCommand({argv + 1, argv + argc});
  auto command = arguments.begin() + static_cast<std::ptrdiff_t>(nodepool::cli::PlaceOfCommand(arguments));
  bool is_standalone = command != arguments.end() && *command == "standalone";
  if (!is_standalone) return nodepool::RunCommand(std::move(arguments));
  std::rotate(arguments.begin(), command, command + 1);
  return nodepool::RunStandalone(std::move(arguments));
}
