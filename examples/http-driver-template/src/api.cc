#include "api.h"

#include <nodepool/base/json_fields.h>

#include <boost/json.hpp>

namespace lantern_driver {

namespace json = boost::json;
using nodepool::NumberIn;
using nodepool::Task;
using nodepool::TextIn;
using nodepool::Verdict;

Task<Signer::Renew> Signer::Sign(nodepool::net::HttpCall& call) {
  call.headers.emplace_back("Authorization", "Bearer " + token_);
  co_return Renew();  // a token that is refused stays so; api/credentials.h renews others
}

api::Fault ReadRefusal(int status, std::string_view body) {
  api::Fault fault = api::ReadFault(status, body);
  boost::system::error_code error;
  json::value document = json::parse(body, error);
  if (error || !document.is_object()) return fault;
  fault.code = TextIn(document.get_object(), "code");
  fault.text = TextIn(document.get_object(), "message");
  if (fault.code == "LimitExceeded") fault.verdict = Verdict::kQuota;
  return fault;
}

api::ApiRequest Request(const Config& config, std::string method, std::string path) {
  api::ApiRequest request;
  request.service = "machines";
  request.name = path.substr(1, path.find('/', 1) - 1);
  request.text = method + " " + config.url + path;
  request.call.method = std::move(method);
  request.call.url = config.url + path;
  return request;
}

std::string BodyOf(const Machine& machine) {
  json::object metadata;
  for (const auto& [key, value] : machine.metadata) metadata[key] = value;
  json::object body{{"name", machine.name}, {"ram", machine.ram}, {"metadata", std::move(metadata)}};
  return json::serialize(body);
}

Machine ReadMachine(const json::object& entry) {
  Machine machine;
  machine.name = TextIn(entry, "name");
  machine.state = TextIn(entry, "state");
  machine.address = TextIn(entry, "address");
  machine.ram = NumberIn(entry, "ram");
  const json::object& metadata = entry.at("metadata").as_object();
  for (const auto& [key, value] : metadata) machine.metadata[key] = TextIn(metadata, key);
  return machine;
}

Machines ReadMachines(const json::value& answer) {
  Machines machines;
  for (const json::value& value : answer.at("machines").as_array()) {
    const json::object& entry = value.as_object();
    machines[TextIn(entry, "id")] = ReadMachine(entry);
  }
  return machines;
}

}  // namespace lantern_driver
