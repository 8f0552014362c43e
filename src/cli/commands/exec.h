#pragma once

#include <optional>
#include <string>

#include "cli/remote/exec.h"
#include "cli/server/lease_claim.h"

namespace nodepool::cli {

// The server as the command line names it.
struct ServerOptions {
  std::string url;
  std::optional<std::string> token_file;  // none: the token is in the environment, in kTokenVariable
  std::string ca_path;
  LeaseTimes times;
};
inline constexpr const char* kTokenVariable = "NODEPOOL_TOKEN";

// Why the text cannot be the address of a server; empty: it can.
std::string FaultOfServer(const std::string& url);
// With the token that the options lead to. Error(kInvalid): there is none; no message shows what was read.
Expected<ServerAccess> AccessOf(const ServerOptions& options);

// `nodepool exec` and `nodepool ssh` on nodes that are leased from a server, without ZooKeeper and
// configuration.
Task<int> ExecByServer(Console& console, ServerOptions server, ExecOptions options);

}  // namespace nodepool::cli
