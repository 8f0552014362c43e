#include "driver/provider_environment.h"

#include "base/text.h"

namespace nodepool::driver {

int ConnectionPort(const Node& node) {
  constexpr int kSsh = 22;
  std::int64_t port = node.connection_port.integer().value_or(kSsh);
  return port >= 1 && port <= 65535 ? static_cast<int>(port) : kSsh;
}

process::Environment MachineEnvironment(process::Environment own, const NodeId& id, const Node& node) {
  own["NODEPOOL_PROVIDER"] = node.provider.value;
  own["NODEPOOL_NODE"] = id.value;
  own["NODEPOOL_HOST"] = node.interface_ip.value_or("");
  own["NODEPOOL_PORT"] = std::to_string(ConnectionPort(node));
  own["NODEPOOL_USER"] = node.username.value_or("");
  own["NODEPOOL_HOST_KEYS"] = Join(node.host_keys, "\n");
  return own;
}

std::string LastSaid(std::string_view output) {
  std::vector<std::string> lines = Split(output, '\n');
  std::erase_if(lines, [](const std::string& line) { return Trim(line).empty(); });
  return lines.empty() ? "" : ": " + lines.back();
}

}  // namespace nodepool::driver
