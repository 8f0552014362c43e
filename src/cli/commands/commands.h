#pragma once

#include <vector>

#include "cli/arguments.h"

namespace nodepool::cli {

// `nodepool help [COMMAND]`, which the parser of the arguments replaces by --help (cli/arguments.h).
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

}  // namespace nodepool::cli
