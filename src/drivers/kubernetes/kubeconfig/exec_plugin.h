#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

// What a plugin has made. Secret.
struct PluginCredential {
  std::string token;  // or:
  std::string certificate_pem;
  std::string key_pem;
  std::optional<WallTime> expires;  // none: never
};

// The variable KUBERNETES_EXEC_INFO for the plugin.
std::string PluginInput(const ExecPlugin& plugin, const Connection& connection);

// Reads a plugin's output. Error(kRetry): it is no credential. Its message quotes nothing.
PluginCredential ReadPluginOutput(const ExecPlugin& plugin, const std::string& output);

// Runs the plugin, for at most a minute. Error: it cannot be run, fails, or makes no credential.
Task<PluginCredential> RunPlugin(process::Runner& runner, ExecPlugin plugin, const Connection& connection,
                                 process::Environment environment);

}  // namespace nodepool::drivers::kubernetes
