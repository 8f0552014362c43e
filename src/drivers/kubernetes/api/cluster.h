#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/paging.h"
#include "drivers/kubernetes/api/access.h"
#include "drivers/kubernetes/api/watch.h"

namespace nodepool::drivers::kubernetes {

// A list, and the version of the cluster that it shows.
struct ObjectList {
  std::vector<Object> objects;
  std::string version;
};

// The calls of one cluster's API (driver-kubernetes.md 4). Paths are those of api/object.h, with a query
// where one is wanted. Errors: ApiError for a refusal, with the Status' reason as its code; HttpError without
// an answer; what AccessSource throws.
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

  // Follows a collection until the server, or an ERROR event, ends the watch. `on_event` is called for each
  // event, in turn; what it throws ends the call. Long computations are interrupted and large events
  // read in the pool, so the loop is never held up. Errors also: Error(kFail) for more than LineQueue may
  // hold, Error(kRetry) for a line that is no event.
  using OnEvent = std::function<void(WatchEvent event)>;
  Task<> Watch(std::string path, Duration longest_silence, OnEvent on_event);

  const std::string& name() const { return name_; }

 private:
  Task<boost::json::object> Call(driver::cloud::api::ApiRequest request);
  Task<ObjectList> ListOnce(std::string collection, std::string selector);
  Task<> HandleEvents(LineQueue& lines, std::string path, Duration longest_silence, OnEvent on_event,
                      TaskGroup& tasks);
  // Fills `lines`, and closes them.
  Task<> Receive(std::string path, Duration longest_silence, LineQueue& lines);
  Task<> ReceiveAnswer(std::string path, Duration longest_silence, LineQueue& lines);
  // Sets `version` to that of the list.
  Task<driver::cloud::api::Page<Object>> ReadPage(std::string path, std::string& version);
  driver::cloud::api::ApiRequest Request(std::string method, std::string path,
                                         std::optional<boost::json::object> body) const;

  Loop& loop_;
  BlockingPool& pool_;
  net::HttpClient& http_;
  AccessSource& access_;
  std::string name_;
  log::Logger logger_{"nodepool.driver.kubernetes"};
  driver::cloud::api::ApiClient client_;
};

}  // namespace nodepool::drivers::kubernetes
