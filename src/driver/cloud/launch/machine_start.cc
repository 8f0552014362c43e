#include "driver/cloud/launch/machine_start.h"

#include <boost/json/serialize.hpp>
#include <cmath>

#include "base/text.h"

namespace nodepool::driver::cloud {

namespace {

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(Verdict::kFail, "the driver's answer makes no sense: " + what);
}

void CheckText(const char* field, const std::optional<std::string>& text) {
  if (text && !IsValidUtf8(*text)) Refuse(std::string(field) + " is not UTF-8 text");
}

void CheckPort(const boost::json::value& port) {
  if (!IsValidUtf8(boost::json::serialize(port))) Refuse("connection_port is not UTF-8 text");
  bool is_port = port.is_int64() && port.as_int64() >= 0 && port.as_int64() <= 65535;
  // The port may be secret, so it is not shown.
  if (!is_port && !port.is_object()) Refuse("connection_port is neither a port nor an object");
}

void CheckConnection(const ConnectionOverrides& connection) {
  CheckText("username", connection.username.value_or(std::nullopt));
  CheckText("python_path", connection.python_path.value_or(std::nullopt));
  CheckText("shell_type", connection.shell_type.value_or(std::nullopt));
  CheckText("connection_type", connection.connection_type.value_or(std::nullopt));
  if (connection.connection_port) CheckPort(*connection.connection_port);
}

// Sets one, in the order in which they are used.
void SetAddress(const std::string& address, std::optional<std::string>& member, Instance& instance) {
  if (address.empty()) return;
  member = address;
  if (!instance.interface_ip) instance.interface_ip = address;
}

}  // namespace

void SetAddresses(const MachineAddresses& addresses, Instance& instance) {
  SetAddress(addresses.public_ipv4, instance.public_ipv4, instance);
  SetAddress(addresses.public_ipv6, instance.public_ipv6, instance);
  SetAddress(addresses.private_ipv4, instance.private_ipv4, instance);
}

std::optional<std::string> EndOfConsole(std::string text) {
  constexpr std::size_t kMost = 16 * 1024;
  if (text.empty()) return std::nullopt;
  if (text.size() <= kMost) return text;
  std::size_t begin = text.size() - kMost;
  std::size_t line = text.find('\n', begin);
  return text.substr(line == std::string::npos ? begin : line + 1);
}

void CheckInstance(const Instance& instance) {
  const boost::json::value& id = instance.external_id;
  if (!id.is_null() && !id.is_string() && !id.is_object())
    Refuse("external_id is neither text nor an object");
  if (!IsValidUtf8(boost::json::serialize(id))) Refuse("external_id is not UTF-8 text");
  CheckText("interface_ip", instance.interface_ip);
  CheckText("public_ipv4", instance.public_ipv4);
  CheckText("public_ipv6", instance.public_ipv6);
  CheckText("private_ipv4", instance.private_ipv4);
  CheckText("private_ipv6", instance.private_ipv6);
  CheckText("cloud", instance.cloud);
  CheckText("az", instance.az);
  CheckText("region", instance.region);
  CheckText("host_id", instance.host_id);
  CheckConnection(instance.connection);
  for (const std::string& key : instance.host_keys.value_or(std::vector<std::string>()))
    CheckText("host_keys", key);
  CheckText("machine_type", instance.machine_type);
  CheckText("choice", instance.choice);
  double price = instance.hourly_price.value_or(0);
  if (!std::isfinite(price) || price < 0) Refuse("hourly_price is " + std::to_string(price));
  if (!IsValidUtf8(boost::json::serialize(instance.driver_data))) Refuse("driver_data is not UTF-8 text");
  if (!IsValidUtf8(boost::json::serialize(instance.node_attributes)))
    Refuse("node_attributes is not UTF-8 text");
  for (const auto& [resource, amount] : instance.quota.resources()) {
    if (!std::isfinite(amount) || amount < 0) Refuse(resource + " is " + std::to_string(amount));
  }
}

void CheckResource(const Resource& resource) {
  if (resource.type.empty()) Refuse("a resource has no type");
  if (resource.id.empty()) Refuse("a resource of type " + Excerpt(resource.type) + " has no id");
}

bool MachineStart::IsConsistent(SteadyTime begun) const {
  constexpr Duration kConsistent = std::chrono::seconds(60);
  return begun - accepted_ >= kConsistent;
}

bool MachineStart::IsUsable(bool is_running, bool has_address) {
  constexpr Duration kAddressLimit = std::chrono::seconds(30);
  has_been_listed_ = true;
  if (!is_running) return false;
  SteadyTime now = loop_.SteadyNow();
  if (running_since_ == SteadyTime()) running_since_ = now;
  return !wants_address_ || has_address || now - running_since_ >= kAddressLimit;
}

}  // namespace nodepool::driver::cloud
