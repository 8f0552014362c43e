#include "driver/cloud/launch/node_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_error.h"
#include "store/images.h"

namespace nodepool::driver::cloud {

namespace {

constexpr std::string_view kBegin = "Launched as ";
constexpr std::size_t kMaxComment = 400;

}  // namespace

std::string LaunchComment(const Instance& instance, const std::string& choice) {
  std::string what = instance.choice.empty() ? choice : instance.choice;
  if (what.empty() && !instance.hourly_price) return "";
  if (what.empty()) what = instance.machine_type.empty() ? "one machine" : instance.machine_type;
  std::string comment = fmt::format("{}{}", kBegin, Excerpt(what, kMaxComment));
  if (instance.hourly_price) comment += fmt::format("; {} per hour", *instance.hourly_price);
  return comment;
}

bool IsLaunchComment(std::string_view comment) { return comment.starts_with(kBegin); }

namespace {

// How clouds begin the codes of refusals for who calls, and for what is booted.
constexpr std::array<std::string_view, 5> kCredentialCodes = {"Auth", "Unauthorized", "InvalidClientTokenId",
                                                              "SignatureDoesNotMatch", "ExpiredToken"};
constexpr std::array<std::string_view, 2> kImageCodes = {"InvalidAMI", "Image"};

template <std::size_t N>
bool BeginsWithOneOf(std::string_view code, const std::array<std::string_view, N>& beginnings) {
  return std::ranges::any_of(beginnings,
                             [code](std::string_view beginning) { return code.starts_with(beginning); });
}

bool NamesImage(const std::string& message) {
  return Lower(message).find("image") != std::string::npos || message.find("InvalidAMI") != std::string::npos;
}

std::optional<FailureKind> KindOfAnswer(const api::ApiError& error) {
  const int status = error.status();
  if (status == 401 || status == 403 || status == 407 || BeginsWithOneOf(error.code(), kCredentialCodes))
    return FailureKind::kAuthentication;
  bool is_refused = status >= 400 && status < 500;
  if (BeginsWithOneOf(error.code(), kImageCodes) || (is_refused && NamesImage(error.message())))
    return FailureKind::kImage;
  return std::nullopt;
}

FailureKind KindOfMachine(const LaunchError& error) {
  switch (error.kind()) {
    case LaunchError::Kind::kCapacity:
      return FailureKind::kCapacity;
    case LaunchError::Kind::kStatus:
      return NamesImage(error.message()) ? FailureKind::kImage : FailureKind::kBoot;
    case LaunchError::Kind::kNetwork:
      return FailureKind::kBoot;
    case LaunchError::Kind::kCandidate:
      break;
  }
  return FailureKind::kOther;
}

}  // namespace

FailureKind KindOf(const Failure& failure) {
  if (failure.verdict() == Verdict::kQuota) return FailureKind::kQuota;
  if (failure.verdict() == Verdict::kTimedOut) return FailureKind::kBoot;
  try {
    failure.Rethrow();
  } catch (const LaunchError& error) {
    return KindOfMachine(error);
  } catch (const api::ApiError& error) {
    if (std::optional<FailureKind> kind = KindOfAnswer(error)) return *kind;
  } catch (...) {
  }
  // What an adapter has found wrong with a label.
  bool is_invalid = failure.verdict() == Verdict::kInvalid || failure.verdict() == Verdict::kNotFound;
  return is_invalid && NamesImage(failure.message()) ? FailureKind::kImage : FailureKind::kOther;
}

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
