#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

// A call of a service with the query protocol (driver-aws.md 5.1).
class Query {
 public:
  explicit Query(std::string action) : action_(std::move(action)) {}

  const std::string& action() const { return action_; }
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return parameters_; }

  Query& Add(std::string name, std::string value);
  Query& Add(std::string name, const char* value) { return Add(std::move(name), std::string(value)); }
  Query& Add(std::string name, int value) { return Add(std::move(name), std::to_string(value)); }
  Query& Add(std::string name, bool value) { return Add(std::move(name), value ? "true" : "false"); }
  // A list: InstanceId.1, InstanceId.2 ...
  Query& AddList(const std::string& name, const std::vector<std::string>& values);
  // One more condition for what a Describe lists.
  Query& AddFilter(std::string name, const std::vector<std::string>& values);

  // The body of the POST.
  std::string Body(const char* version) const;

  // Lists and gets; anything else changes something.
  bool reads() const { return action_.starts_with("Describe") || action_.starts_with("Get"); }
  // Ends or removes something.
  bool frees() const {
    for (const char* verb : {"Delete", "Release", "Terminate"}) {
      if (action_.starts_with(verb)) return true;
    }
    return false;
  }

 private:
  std::string action_;
  std::vector<std::pair<std::string, std::string>> parameters_;
  int filters_ = 0;
};

// The POST of a query to a service at `url`. It may be repeated: what creates something has a client token,
// the other calls read, get credentials, or say how things shall be.
net::HttpCall FormCall(const std::string& url, const Query& query, const char* version,
                       std::shared_ptr<const net::TlsSettings> tls);

}  // namespace nodepool::drivers::aws
