#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/paging.h"
#include "drivers/kubernetes/api/access.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

// A list, and the version of the cluster that it shows.
struct ObjectList {
  std::vector<Object> objects;
  std::string version;
};

// The calls of one cluster's API (driver-kubernetes.md 4). Paths are those of api/paths.h, with a query where
// one is wanted. Errors: ApiError for a refusal, with the Status' reason as its code; HttpError without an
// answer; what AccessSource throws.
class Cluster {
 public:
  // Everything outlives the cluster. `name` is for messages: "context ci".
  Cluster(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, AccessSource& access,
          std::string name, driver::cloud::api::CallMetrics metrics);

  Task<boost::json::object> Get(std::string path);
  // Creates an object whose body has its name. Repeated when an answer was lost: a creation that succeeded
  // before is refused then, with the reason AlreadyExists.
  Task<boost::json::object> Create(std::string collection, boost::json::object body);
  Task<boost::json::object> MergePatch(std::string path, boost::json::object body);
  // False: there is no such object. `options` is a DeleteOptions; empty: none.
  Task<bool> Delete(std::string path, boost::json::object options);

  // Reads a whole list, page by page, from the start again where the pages have become too old meanwhile;
  // `selector` is a query such as "labelSelector=...", or empty.
  Task<ObjectList> List(std::string collection, std::string selector);

  // Reads an answer that goes on, line by line, until the server ends it. `on_line` is called on the loop and
  // must not throw; false ends the call as an HttpError. Error(kFail): a line is longer than 4 MiB.
  using OnLine = std::function<bool(std::string_view line)>;
  Task<> ReadLines(std::string path, Duration longest_silence, OnLine on_line);

  const std::string& name() const { return name_; }

 private:
  Task<boost::json::object> Call(driver::cloud::api::ApiRequest request);
  Task<ObjectList> ListOnce(std::string collection, std::string selector);
  // Sets `version` to that of the list.
  Task<driver::cloud::api::Page<Object>> ReadPage(std::string path, std::string& version);
  driver::cloud::api::ApiRequest Request(std::string method, std::string path,
                                         std::optional<boost::json::object> body) const;

  net::HttpClient& http_;
  AccessSource& access_;
  std::string name_;
  driver::cloud::api::ApiClient client_;
};

}  // namespace nodepool::drivers::kubernetes
