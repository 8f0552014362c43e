#include "driver/cloud/launch/node_record.h"

#include "store/images.h"

namespace nodepool::driver::cloud {

namespace {

void FillConnection(const ConnectionSettings& connection, Node& record) {
  record.username = connection.username;
  record.python_path = connection.python_path;
  record.shell_type = connection.shell_type;
  record.connection_type = connection.connection_type;
  record.connection_port = connection.connection_port;
}

template <class Field, class Value>
void Override(Field& field, const std::optional<Value>& value) {
  if (value) field = *value;
}

void OverrideConnection(const ConnectionOverrides& connection, Node& record) {
  Override(record.username, connection.username);
  Override(record.python_path, connection.python_path);
  Override(record.shell_type, connection.shell_type);
  Override(record.connection_type, connection.connection_type);
  Override(record.connection_port, connection.connection_port);
}

std::optional<std::string> InterfaceIp(const Instance& instance, const PoolConfig& pool) {
  if (pool.use_internal_ip) {
    if (instance.private_ipv4) return instance.private_ipv4;
    if (instance.private_ipv6) return instance.private_ipv6;
  }
  return instance.interface_ip;
}

// The instance's attributes, overlaid by the pool's.
boost::json::value Attributes(const Instance& instance, const PoolConfig& pool) {
  boost::json::object attributes = instance.node_attributes.as_object();
  if (pool.node_attributes.is_object()) {
    for (const auto& [key, value] : pool.node_attributes.as_object()) attributes[key] = value;
  }
  return attributes;
}

}  // namespace

std::optional<std::string> FillBeforeLaunch(ProviderParts& context, const LabelConfig& label,
                                            const NodeRequest& request, Node& record) {
  std::optional<std::string> image_external_id;
  if (label.diskimage) {
    const store::StoredUpload* upload = context.Image(label, request);
    if (upload == nullptr) {
      throw Error(Verdict::kInvalid, "image " + label.diskimage->str() + " has no ready upload in provider " +
                                         context.config->name.str());
    }
    record.image_id = store::Images::UploadPath(upload->id);
    image_external_id = upload->record.external_id;
  } else {
    record.image_id = label.cloud_image;
  }
  FillConnection(label.connection, record);
  record.resources = context.needs.For(label).resources();
  return image_external_id;
}

void FillFromInstance(const Instance& instance, const PoolConfig& pool, Node& record) {
  if (!instance.external_id.is_null()) record.external_id = instance.external_id;
  record.interface_ip = InterfaceIp(instance, pool);
  record.public_ipv4 = instance.public_ipv4;
  record.public_ipv6 = instance.public_ipv6;
  record.private_ipv4 = instance.private_ipv4;
  record.cloud = instance.cloud;
  record.az = instance.az;
  record.region = instance.region;
  record.host_id = instance.host_id;
  record.driver_data = instance.driver_data;
  record.slot = instance.slot;
  record.resources = instance.quota.resources();
  record.hourly_price = instance.hourly_price;
  OverrideConnection(instance.connection, record);
  Override(record.host_keys, instance.host_keys);
  if (instance.node_attributes.is_object()) record.attributes = Attributes(instance, pool);
}

}  // namespace nodepool::driver::cloud
