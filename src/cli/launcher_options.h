#pragma once

#include <optional>
#include <string>

namespace nodepool::cli {

// The command line of nodepool-launcher (operations.md 2, 3.1).
struct LauncherOptions {
  std::string config_path = "/etc/nodepool/nodepool.yaml";
  std::optional<std::string> secure_path;
  bool is_debug = false;
  bool has_webapp = true;
  bool wants_repl = false;  // accepted and ignored (D-61)
  // Seconds between clean-up passes; for tests, not shown in the help.
  std::optional<double> cleanup_interval;
};

// Fills `options`. Returns the exit status when there is nothing to run: 0 after
// --help or --version, 2 after a usage error, which has been told on stderr.
std::optional<int> ParseLauncherOptions(int argc, char** argv, LauncherOptions& options);

// As the operating system reports it, up to the first dot.
std::string Hostname();
// With the domain where the resolver knows it, else the host name.
std::string FullyQualifiedHostname();

}  // namespace nodepool::cli
