#include "driver/statemachine/check_instance.h"

#include <boost/json/serialize.hpp>
#include <cmath>

#include "base/text.h"

namespace nodepool::driver::statemachine {

namespace {

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(Verdict::kFail, "the driver's answer makes no sense: " + what);
}

void CheckText(const char* field, const std::optional<std::string>& text) {
  if (text && !IsValidUtf8(*text)) Refuse(std::string(field) + " is not UTF-8 text");
}

}  // namespace

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
  if (instance.connection) {
    CheckText("username", instance.connection->username);
    CheckText("python_path", instance.connection->python_path);
    CheckText("shell_type", instance.connection->shell_type);
    CheckText("connection_type", instance.connection->connection_type);
    int port = instance.connection->connection_port;
    if (port < 0 || port > 65535) Refuse("connection_port is " + std::to_string(port));
  }
  for (const std::string& key : instance.host_keys.value_or(std::vector<std::string>()))
    CheckText("host_keys", key);
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

}  // namespace nodepool::driver::statemachine
