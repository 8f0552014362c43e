#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "driver/cloud/launch/candidates.h"
#include "drivers/gce/api/services.h"

namespace nodepool::drivers::gce {

// A machine as Google lists it.
struct GceInstance {
  std::string number;  // Google's id, which no other instance ever has
  std::string name;
  std::string zone;
  std::string type;
  std::string status;        // "PROVISIONING", "STAGING", "RUNNING", "STOPPING", "TERMINATED" ...
  std::string private_ipv4;  // the addresses are empty where there are none
  std::string public_ipv4;
  std::string public_ipv6;
  bool has_public_ipv4 = false;  // it has one, or is to get one
  bool is_spot = false;
  bool has_provider_label = false;              // lists by label show it
  std::map<std::string, std::string> metadata;  // Nodepool's only
  double disk_size = 0;                         // of all disks, GB

  // It was stopped or taken away, or will be soon; it may exist for ever all the same.
  bool is_lost() const {
    return status == "STOPPING" || status == "STOPPED" || status == "SUSPENDING" || status == "SUSPENDED" ||
           status == "TERMINATED" || status == "DEPROVISIONING";
  }
};

// Of driver::cloud::Resource; its id is "zone/name".
inline constexpr const char* kInstanceKind = "instance";

// By name; of one zone.
using GceInstances = std::map<std::string, GceInstance>;

GceInstance ReadInstance(const boost::json::object& entry);

// Of one instance, by its name or number.
std::string InstancePath(const std::string& zone, const std::string& name);

// The instances of a zone that have the provider's label; without a provider all of them.
Task<GceInstances> ListInstancesIn(Compute& compute, std::string zone, std::string provider);

// None: there is no such instance; it may be too new for Google to know it everywhere.
Task<std::optional<GceInstance>> FindInstance(Compute& compute, std::string zone, std::string name);

// What a node's external id names (driver-gce.md 1).
struct MachineId {
  std::string name;
  std::string zone;
  // The mark of the launch whose insert may not have been carried out; empty: the name is the node's.
  std::string attempt = "";
};
// The name, or {"instance": "np...", "zone": "...", "attempt": "..."} where it does not say all; `usual`: the
// zone that is meant where there is none.
boost::json::value ExternalId(const MachineId& id, const std::string& usual);
MachineId ReadExternalId(const boost::json::value& external_id, const std::string& usual);

// An image as instances are made from it.
struct ImageSource {
  std::string url;
  std::string architecture;  // "X86_64", "ARM64"; empty: it is not known
};

// The newest image of a family of a project. Error(kInvalid): the project has no image of it.
using Family = std::pair<std::string, std::string>;  // project and family
Task<ImageSource> ReadNewest(Compute& compute, Family family);

// A machine type in a zone (driver-gce.md 15).
using Candidate = driver::cloud::Candidate<std::string>;

// The size of a machine type.
struct TypeSize {
  double cores = 0;               // virtual CPUs
  double ram = 0;                 // MiB
  std::string architecture = "";  // "X86_64", "ARM64"; empty: Google does not say
};

// None: the zone has no such type. Errors: those of Compute::Get.
Task<std::optional<TypeSize>> ReadType(Compute& compute, Candidate candidate);

}  // namespace nodepool::drivers::gce
