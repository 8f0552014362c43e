#pragma once

#include "cli/invocation.h"

namespace nodepool::cli {

// Declares the command or commands of a file of this folder, with their options.
using RegisterCommand = void(CLI::App& app, Invocation& invocation);

RegisterCommand RegisterStatus;
RegisterCommand RegisterNodeList;
RegisterCommand RegisterRequestList;
RegisterCommand RegisterRecordListings;
RegisterCommand RegisterLabelList;
RegisterCommand RegisterInfo;
RegisterCommand RegisterAliens;
RegisterCommand RegisterImagePause;
RegisterCommand RegisterImageBuild;
RegisterCommand RegisterImageDelete;
RegisterCommand RegisterImageData;
RegisterCommand RegisterChangeNode;
RegisterCommand RegisterErase;
RegisterCommand RegisterJobs;
RegisterCommand RegisterRequest;
RegisterCommand RegisterRelease;
RegisterCommand RegisterMigrate;
RegisterCommand RegisterStandalone;
RegisterCommand RegisterConfigValidate;

// In the order in which help shows them.
inline constexpr RegisterCommand* kCommands[] = {
    &RegisterStatus,         &RegisterNodeList,    &RegisterRequestList,   &RegisterLabelList,
    &RegisterRecordListings, &RegisterInfo,        &RegisterAliens,        &RegisterImagePause,
    &RegisterImageBuild,     &RegisterImageDelete, &RegisterImageData,     &RegisterChangeNode,
    &RegisterErase,          &RegisterJobs,        &RegisterRequest,       &RegisterRelease,
    &RegisterMigrate,        &RegisterStandalone,  &RegisterConfigValidate};

}  // namespace nodepool::cli
