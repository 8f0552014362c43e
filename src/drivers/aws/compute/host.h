#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drivers/aws/api/ec2.h"

namespace nodepool::drivers::aws {

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
