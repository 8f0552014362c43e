#pragma once

#include <string>

namespace nodepool::daemon {

inline constexpr const char* kDefaultConfig = "/etc/nodepool/nodepool.yaml";
// The environment variable that names the configuration where no -c does.
inline constexpr const char* kConfigVariable = "NODEPOOL_CONFIG";

// Error(kInvalid) that says how to name another file, when there is none at `path`.
void RequireConfig(const std::string& path);

}  // namespace nodepool::daemon
