#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/config/cloud_files.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::openstack {

enum class Service { kIdentity, kCompute, kNetwork, kImage, kBlockStorage };
inline constexpr std::size_t kServices = 5;
std::string_view ToString(Service service);  // the official type: "compute" ...

// How to log in: the `auth` mapping. All of it is secret.
struct Credentials {
  std::string type;  // password, token, v3applicationcredential, none (D-97)
  std::map<std::string, std::string> options;

  // Empty: the option is not given.
  const std::string& Get(const std::string& option) const;
};

// Settings of one service, `<service>_...` in clouds.yaml.
struct ServiceSettings {
  bool exists = true;             // has_<service>
  std::string endpoint_override;  // instead of the catalog's URL
  std::string type;               // in the catalog; empty: the official one or an alias
  std::string name;
  std::string region;                   // empty: the cloud's
  std::vector<std::string> interfaces;  // empty: the cloud's
  std::string api_version;
  VersionNumber default_microversion;      // named in every call; {0, 0}: each call names its own
  std::optional<int> status_code_retries;  // of a call that an overloaded service refused; none: our default
};

// An entry of `networks`.
struct NetworkSettings {
  std::string name;  // or id
  std::optional<bool> routes_ipv4_externally;
  std::optional<bool> routes_ipv6_externally;
  bool is_nat_source = false;
  bool is_nat_destination = false;
  bool is_default_interface = false;
};

// One cloud and region, resolved (driver-openstack.md 3.3).
struct CloudConfig {
  std::string name;
  std::string region;  // empty: none
  Credentials credentials;
  std::vector<std::string> interfaces;  // in order of preference
  net::TlsSettings tls;
  std::optional<Duration> api_timeout;
  std::array<ServiceSettings, kServices> services;  // by Service

  std::string image_format = "qcow2";
  boost::json::object disable_vendor_agent;  // more image properties
  bool imports_images = false;               // by the import API instead of a plain upload
  bool has_floating_ips = true;              // floating_ip_source
  bool is_private = false;
  bool uses_external_network = true;
  bool uses_internal_network = true;
  bool forces_ipv4 = false;
  std::vector<NetworkSettings> networks;

  // Everything that the above is made from, for comparison only: it contains secrets.
  std::string fingerprint;

  ServiceSettings& Of(Service service) { return services[static_cast<std::size_t>(service)]; }
  const ServiceSettings& Of(Service service) const { return services[static_cast<std::size_t>(service)]; }
};

// The cloud by name, or the default one (driver-openstack.md 3.4), in one region. Error(kInvalid) names the
// cloud and the fault, but never a value that may be secret.
CloudConfig ResolveCloud(const CloudFiles& files, const std::optional<std::string>& name,
                         const std::optional<std::string>& region);

// Moves the credentials from a cloud's top level into its `auth`, under their current names
// (driver-openstack.md 3.3, step 6).
void GatherAuth(boost::json::object& settings);

// Reads `auth_type` and `auth` and checks that they suffice. Error(kInvalid): a type
// that is not supported (D-97), or a missing option.
Credentials ReadCredentials(const boost::json::object& settings, const std::string& cloud);

// The body of the request for a token (driver-openstack.md 4).
boost::json::object TokenRequest(const Credentials& credentials);

}  // namespace nodepool::drivers::openstack
