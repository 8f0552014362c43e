#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/node_claim.h"
#include "driver/loading/config_follower.h"

namespace nodepool::cli {

// `nodepool help [COMMAND]`, which the parser of the arguments replaces by --help (cli/command.h).
inline constexpr const char* kHelpCommand = "help";

// Declares the command or commands of a file of this folder, with their options.
using RegisterCommand = void(CLI::App& app, Invocation& invocation);

RegisterCommand RegisterStatus;
RegisterCommand RegisterNodeList;
RegisterCommand RegisterRequestList;
RegisterCommand RegisterProviderList;
RegisterCommand RegisterLabelList;
RegisterCommand RegisterImageListings;
RegisterCommand RegisterRunners;
RegisterCommand RegisterInfo;
RegisterCommand RegisterAliens;
RegisterCommand RegisterImagePause;
RegisterCommand RegisterImageBuild;
RegisterCommand RegisterImageDelete;
RegisterCommand RegisterImageData;
RegisterCommand RegisterChangeNode;
RegisterCommand RegisterProviderPause;
RegisterCommand RegisterErase;
RegisterCommand RegisterJobs;
RegisterCommand RegisterRequest;
RegisterCommand RegisterRelease;
RegisterCommand RegisterExec;
RegisterCommand RegisterSsh;
RegisterCommand RegisterMigrate;
RegisterCommand RegisterStandalone;
RegisterCommand RegisterConfigValidate;
RegisterCommand RegisterToken;
RegisterCommand RegisterHelp;
RegisterCommand RegisterComplete;

struct CommandGroup {
  const char* name;  // its heading in the help; empty: not shown
  std::vector<RegisterCommand*> commands;
};

// In the order in which help shows them.
inline const CommandGroup kCommandGroups[] = {
    {"Looking",
     {&RegisterStatus, &RegisterNodeList, &RegisterRequestList, &RegisterProviderList, &RegisterLabelList,
      &RegisterRunners, &RegisterInfo, &RegisterAliens}},
    {"Asking", {&RegisterRequest, &RegisterRelease, &RegisterExec, &RegisterSsh}},
    {"Changing", {&RegisterChangeNode, &RegisterProviderPause, &RegisterErase, &RegisterJobs}},
    {"Images",
     {&RegisterImageListings, &RegisterImagePause, &RegisterImageBuild, &RegisterImageDelete,
      &RegisterImageData}},
    {"Setting up",
     {&RegisterStandalone, &RegisterConfigValidate, &RegisterToken, &RegisterMigrate, &RegisterHelp}},
    {"", {&RegisterComplete}}};

// Checks ZooKeeper and the clouds of a configuration, and returns the exit status.
using AskOnline = std::function<int(std::shared_ptr<const driver::LoadedConfig>)>;

// `nodepool config-validate`: logs the faults of the configuration (configuration.md 13), and returns the
// exit status.
int ConfigValidate(const Invocation& invocation, const driver::Registry& drivers,
                   config::DriverSchemas others, const AskOnline& ask_online);

// Creates a provider of a configuration that is not started; it is stopped before it is destroyed.
using MakeTools = std::function<std::unique_ptr<driver::OperatorTools>(const ProviderName&)>;

// Asks each provider of the configuration, all at once, whether what its section names is there, and logs one
// line for each. False: something is wrong.
Task<bool> CheckProviders(Loop& loop, std::shared_ptr<const driver::LoadedConfig> config, MakeTools make);

// The online part of `nodepool config-validate`: awaits `connect`, which connects to the ZooKeeper `servers`,
// and checks each provider of the configuration. Logs one line for each of them. Status 1 if anything is
// wrong.
Task<int> CheckOnline(Context& context, std::string servers, Task<> connect);

enum class MigrateTo {
  kEnsemble,  // from the embedded server
  kEmbedded,  // from the ensemble
  kChroot,    // within the ensemble, from where the Python implementation stores the records (D-01)
};

struct MigrateOptions {
  MigrateTo to = MigrateTo::kEnsemble;
  bool is_dry_run = false;        // only print what exists
  bool takes_everything = false;  // also the records of other programs
  bool is_forced = false;         // even if a program is connected to either side
  bool replaces = false;          // delete the records of the target first
};

// Copies the records between the embedded server's store and the ensemble, both as configured, or within the
// ensemble; then compares both sides. Only a migration within the ensemble then deletes the original. The
// store is opened in this process; if `nodepool standalone` has it open, that is an error, but a dry run or a
// forced migration uses its server.
//
// Error(kConflict): a program is connected, or the target has records; nothing was written.
Task<int> Migrate(Context& context, MigrateOptions options);

}  // namespace nodepool::cli

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace nodepool::cli {

// The options of commands that ask for nodes, as they are on the command line. The labels are declared by the
// command.
struct WishArguments {
  std::vector<std::string> labels;
  NodeWish wish;
  std::string provider;

  NodeWish ToWish() const;
};

void AddWishOptions(CLI::App& command, WishArguments& arguments);

}  // namespace nodepool::cli
