#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/commands.h"

namespace nodepool::cli {

namespace {

using Values = std::vector<std::string>;

Values Labels(const driver::LoadedConfig& config) {
  Values values;
  for (const auto& [name, label] : config.common.labels) values.push_back(name.value);
  return values;
}

Values Providers(const driver::LoadedConfig& config) {
  Values values;
  for (const config::ProviderSection& section : config.common.providers) values.push_back(section.name.value);
  return values;
}

Values Images(const driver::LoadedConfig& config) {
  Values values;
  for (const auto& [name, image] : config.common.diskimages) values.push_back(name.value);
  return values;
}

Task<Values> Nodes(Context& context) {
  Values values;
  std::vector<NodeId> ids = co_await context.store.nodes.List();
  for (const NodeId& id : ids) values.push_back(id.value);
  co_return values;
}

Task<Values> Requests(Context& context) {
  Values values;
  std::vector<RequestId> ids = co_await context.store.requests.List();
  for (const RequestId& id : ids) values.push_back(id.value);
  co_return values;
}

Task<Values> RequestsAndNodes(Context& context) {
  Values values = co_await Requests(context);
  Values nodes = co_await Nodes(context);
  values.insert(values.end(), nodes.begin(), nodes.end());
  co_return values;
}

Task<Values> Builds(Context& context) {
  Values values;
  std::vector<ImageName> images = co_await context.store.images.List();
  for (const ImageName& image : images) {
    std::vector<store::StoredBuild> builds = co_await context.store.images.ListBuilds(image);
    for (const store::StoredBuild& build : builds) values.push_back(build.id.str());
  }
  co_return values;
}

const std::map<std::string, Values (*)(const driver::LoadedConfig&)> kOfConfig = {
    {"images", &Images}, {"labels", &Labels}, {"providers", &Providers}};
const std::map<std::string, Task<Values> (*)(Context&)> kOfTree = {{"builds", &Builds},
                                                                   {"nodes", &Nodes},
                                                                   {"requests", &Requests},
                                                                   {"requests-and-nodes", &RequestsAndNodes}};

int WriteValues(const Values& values, std::ostream& out) {
  for (const std::string& value : values) out << value << '\n';
  return 0;
}

// The kinds of values that shells complete (cli/reference/completions.cc): labels, providers and images from
// the configuration; nodes, requests, both, and builds from ZooKeeper.
std::vector<std::string> ValueKinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, values] : kOfConfig) kinds.push_back(kind);
  for (const auto& [kind, values] : kOfTree) kinds.push_back(kind);
  return kinds;
}

bool IsInConfig(const std::string& kind) { return kOfConfig.contains(kind); }

// Prints one line for each value. Returns the exit status.
int CompleteFromConfig(const std::string& kind, const driver::LoadedConfig& config, std::ostream& out) {
  return WriteValues(kOfConfig.at(kind)(config), out);
}

Task<int> CompleteFromTree(Context& context, std::string kind) {
  Task<Values> reading = kOfTree.at(kind)(context);
  Values values = co_await std::move(reading);
  co_return WriteValues(values, context.out);
}

}  // namespace

void RegisterHelp(CLI::App& app, Invocation&) {
  static std::string ignored;
  std::vector<std::string> names;
  auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_shown)) names.push_back(command->get_name());
  app.add_subcommand(kHelpCommand, "show what a command takes")
      ->add_option("COMMAND", ignored, "name of the command; without it, the commands are listed")
      ->type_name(fmt::format("COMMAND:{{{}}}", Join(names, ",")));
}

void RegisterComplete(CLI::App& app, Invocation& invocation) {
  auto kind = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("complete", "print values for the completion of shells");
  command->add_option("KIND", *kind, "of what")
      ->required()
      ->check(CLI::IsMember(ValueKinds()))
      ->type_name("");
  command->callback([&invocation, kind] {
    invocation.is_silent = true;
    if (IsInConfig(*kind)) {
      invocation.offline_command = [kind](const driver::LoadedConfig& config, std::ostream& out) {
        return CompleteFromConfig(*kind, config, out);
      };
    } else {
      invocation.command = [kind](Context& context) { return CompleteFromTree(context, *kind); };
    }
  });
}

}  // namespace nodepool::cli
