#pragma once

#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "driver/cloud/quota/account_counters.h"
#include "driver/provider_config.h"
#include "drivers/aws/api/services.h"

namespace nodepool::drivers::aws {

// A machine as EC2 lists it.
struct Ec2Instance {
  std::string id;
  std::string state;  // "pending", "running", "shutting-down", "terminated", "stopping", "stopped"
  std::string type;
  std::string zone;
  std::string private_ipv4;  // the addresses are empty where there are none
  std::string public_ipv4;
  std::string ipv6;
  bool is_spot = false;
  std::string host;  // the dedicated host on which it runs; empty: none
  std::map<std::string, std::string> tags;
  std::string reason_code;  // why it ended: "Server.InsufficientInstanceCapacity"
  std::string reason;

  bool is_gone() const { return state == "terminated"; }
  // It ended, or will soon, and never runs again; one that is stopped was stopped by somebody else.
  bool is_lost() const {
    return is_gone() || state == "shutting-down" || state == "stopping" || state == "stopped";
  }
};

using Ec2Instances = std::map<std::string, Ec2Instance>;

std::map<std::string, std::string> ReadTagSet(const pugi::xml_node& node);
// Of one <item> of an <instancesSet>.
Ec2Instance ReadInstance(const pugi::xml_node& item);
// Of an answer to RunInstances, and to DescribeInstances.
std::vector<Ec2Instance> ReadReservation(const pugi::xml_node& root);
std::vector<Ec2Instance> ReadReservations(const pugi::xml_node& root);

// The instances with a tag, or all of the account. The keys are their ids.
Task<Ec2Instances> ListInstancesOf(Ec2& ec2, std::string provider);
Task<Ec2Instances> ListAllInstances(Ec2& ec2);

// The end of what the instance has printed on its console; none: nothing yet. EC2 keeps 64 KiB, and shows
// them after minutes only where the type of the instance cannot show the latest.
Task<std::optional<std::string>> ReadConsole(Ec2& ec2, std::string instance);

// A request for a spot instance, as EC2 lists it.
struct SpotRequest {
  std::string instance;
  std::string status;   // "marked-for-termination"
  std::string message;  // AWS's words for it
};
std::vector<SpotRequest> ReadSpotRequests(const pugi::xml_node& root);

// Those of the account whose instances AWS will take away: they get notice two minutes before.
Task<std::vector<SpotRequest>> ListMarkedSpotRequests(Ec2& ec2);

// A dedicated host as EC2 lists it.
struct Host {
  std::string id;
  std::string state;  // "pending", "available", "released", ...
  std::map<std::string, std::string> tags;

  bool is_gone() const { return state == "released" || state == "released-permanent-failure"; }
};

using Hosts = std::map<std::string, Host>;

std::vector<Host> ReadHosts(const pugi::xml_node& root);

// Those with the provider's tag; the keys are their ids.
Task<Hosts> ListHostsOf(Ec2& ec2, std::string provider);

// Asks for a host for instances of that type in a zone; returns its id. EC2 makes one for a token.
Task<std::string> AllocateHost(Ec2& ec2, std::string type, std::string zone,
                               std::map<std::string, std::string> tags, std::string token);

// Ends when EC2 has accepted it, or there is no such host. Error(kRetry): it cannot be released yet.
Task<> ReleaseHost(Ec2& ec2, std::string id);

// The size of a kind of machine.
struct TypeSize {
  std::string name;
  double cores = 0;  // usually half of the virtual CPUs
  double vcpus = 0;
  double ram = 0;  // MiB
};

std::vector<TypeSize> ReadTypes(const pugi::xml_node& root);

// One instance on a host of its own: nothing but the host counts.
driver::QuotaInformation NeedOfHost(const std::string& type);

// What is known of EC2's kinds of machines, by name.
class InstanceTypes : public driver::cloud::MachineSizes<std::string, TypeSize> {
 public:
  // EC2's client outlives it.
  InstanceTypes(Ec2& ec2, log::Logger logger) : ec2_(ec2), logger_(std::move(logger)) {}

  // Asks for those that are not known yet, up to 100 at a time.
  Task<> Learn(std::set<std::string> names);
  // Logs once of each that EC2 does not know, of an instance that exists.
  void WarnOfUnknown(const std::set<std::string>& names);
  // One instance with its size, also under the code of its quota; of an unknown type, one instance.
  driver::QuotaInformation NeedOf(const std::string& name, bool is_spot) const;

 private:
  Task<> Ask(std::vector<std::string> names);

  Ec2& ec2_;
  log::Logger logger_;
  std::set<std::string> warned_of_;
};

// The code of the quota under which the virtual CPUs of an instance type count (driver-aws.md 13.1): families
// share one, and spot instances have quotas of their own. Empty: none is known.
std::string_view CodeOfType(std::string_view type, bool is_spot);

// The code of the quota of dedicated hosts for an instance type. Empty: none is known.
std::string_view CodeOfHost(std::string_view type);

// The codes of the quotas under which a volume counts: its size in GB, and its operations per second. Empty:
// there is none.
struct VolumeCodes {
  std::string_view storage;
  std::string_view iops;
};
VolumeCodes CodesOfVolume(std::string_view volume_type);

// Ends instances; those that are wanted at about the same moment go in one call (driver-aws.md 12).
class Terminations {
 public:
  // The calls belong to `tasks`; everything outlives it.
  Terminations(Ec2& ec2, TaskGroup& tasks) : ec2_(ec2), tasks_(tasks) {}

  // Ends when EC2 has accepted it; false: it knows no such instance. Errors: why it refused.
  Task<bool> Terminate(std::string id);

 private:
  using Waiting = std::map<std::string, std::vector<std::shared_ptr<OneShot<bool>>>>;  // by instance

  Task<> SendLater();
  Task<> Send(Waiting batch);
  static void Answer(const Waiting& batch, const std::string& id, bool is_known);

  Ec2& ec2_;
  TaskGroup& tasks_;
  Waiting next_;
};

// The ids of `batch` that the text of an error names.
std::vector<std::string> NamedIn(const std::string& message, const std::vector<std::string>& batch);

}  // namespace nodepool::drivers::aws
