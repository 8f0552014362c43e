#pragma once

#include <compare>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"

namespace nodepool::drivers {

// A host of a static provider (drivers.md 7.1).
struct StaticNode {
  std::string name;  // host name or address
  std::vector<LabelName> labels;
  driver::ConnectionSettings connection = {.username = "zuul"};
  Duration timeout = std::chrono::seconds(5);  // for the host key scan
  bool host_key_checking = true;
  std::vector<std::string> host_keys;  // "<type> <base64>"; empty: accept what the scan finds
  int max_parallel_jobs = 1;           // slots
};

// Identifies a configured host; the same machine with another user is another host (drivers.md 7.2).
struct HostIdentity {
  std::string name;
  std::string username;
  int port = 22;
  auto operator<=>(const HostIdentity&) const = default;

  std::string ToString() const;  // "user@name:port"
};

HostIdentity IdentityOf(const StaticNode& node);

struct StaticPool : driver::PoolConfig {
  std::vector<StaticNode> nodes;  // in file order
};

// The pools are StaticPool; their labels are plain LabelConfig without an image.
struct StaticConfig : driver::ProviderConfig {};

const config::Schema& StaticSchema();

// Throws Error(kInvalid) with line and column. A host that is listed twice is a warning of `config`.
std::shared_ptr<const StaticConfig> LoadStaticConfig(const config::ProviderSection& section,
                                                     config::Config& config);

}  // namespace nodepool::drivers
