#pragma once

#include <nodepool/driver/cloud/api/api_client.h>

#include <map>
#include <string>

#include "config.h"

// The cloud's HTTP API: what its calls look like, and what its answers mean. Put yours here.
namespace lantern_driver {

namespace api = nodepool::driver::cloud::api;

struct Machine {
  std::string name;
  std::string state;
  std::string address;
  double ram = 0;                               // MiB
  std::map<std::string, std::string> metadata;  // as given at its creation
};
using Machines = std::map<std::string, Machine>;  // by id

// Adds the credentials to each call.
class Signer : public api::Signer {
 public:
  explicit Signer(std::string token) : token_(std::move(token)) {}
  nodepool::Task<Renew> Sign(nodepool::net::HttpCall& call) override;

 private:
  std::string token_;
};

// How the cloud refuses: {"code": "LimitExceeded", "message": "..."}.
api::Fault ReadRefusal(int status, std::string_view body);

// "POST", "/machines"
api::ApiRequest Request(const Config& config, std::string method, std::string path);

// The body of POST /machines.
std::string BodyOf(const Machine& machine);
Machine ReadMachine(const boost::json::object& entry);
// The answer of GET /machines.
Machines ReadMachines(const boost::json::value& answer);

}  // namespace lantern_driver
