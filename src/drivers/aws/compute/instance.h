#pragma once

#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/aws/api/ec2.h"

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

}  // namespace nodepool::drivers::aws
