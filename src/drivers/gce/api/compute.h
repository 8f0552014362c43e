#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/paging.h"

namespace nodepool::drivers::gce {

// Environment variables by name.
using Variables = std::map<std::string, std::string>;

// Where Google's services are, without a slash at the end (driver-gce.md 4).
struct Endpoints {
  std::string compute = "https://compute.googleapis.com/compute/v1";
  std::string storage = "https://storage.googleapis.com";
  std::string metadata = "http://metadata.google.internal";
};

// The usual ones, or those that the environment names: GCE_ENDPOINT (all APIs),
// CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE, GCE_METADATA_HOST. Error(kInvalid): one is no URL with http or
// https.
Endpoints EndpointsOf(const Variables& variables);

// The last segment of a resource's URL, whatever its host: "us-central1-a" of ".../zones/us-central1-a".
std::string LastSegment(const std::string& url);

// A change that Google carries out after it has answered (driver-gce.md 8).
struct Operation {
  std::string name;
  std::string target;     // URL of what it changes
  std::string target_id;  // its number
  std::string type;       // "insert", "compute.instances.preempted"
  bool is_done = false;
  // The most specific of its errors; empty: none.
  std::string code;
  std::string message;  // with the quota's metric and other zones, where Google names them

  bool has_failed() const { return !code.empty(); }
};

Operation ReadOperation(const boost::json::object& entry);

// Whose quota and metrics a client of Google's services counts for.
struct ClientSettings {
  double rate = 0;  // calls per second that change something, reads ten times as many; 0: unlimited
  driver::cloud::api::CallMetrics metrics;
};

// What the clients of Google's services have in common. `repeats`: of a call after a passing fault.
driver::cloud::api::ApiClient::Options ClientOptions(const ClientSettings& settings, int repeats);

// The object in an answer; `action`: what was answered. Error(kRetry): it is something else.
const boost::json::object& ObjectOf(const driver::cloud::api::ApiReply& reply, const std::string& action);

// A page of a list, as Compute Engine and Cloud Storage answer: {"items": [...], "nextPageToken": "..."}.
template <class T>
driver::cloud::api::Page<T> PageOf(const driver::cloud::api::ApiReply& reply, const std::string& action,
                                   const std::function<T(const boost::json::object&)>& read) {
  const boost::json::object& answer = ObjectOf(reply, action);
  driver::cloud::api::Page<T> page{{}, TextIn(answer, "nextPageToken"), reply.bytes};
  driver::cloud::api::AddEntries<T>(ArrayIn(answer, "items"), read, page);
  return page;
}

// A resource of Compute Engine and what is done with it.
struct ComputeCall {
  std::string action;      // in metrics and messages: "instances.get"
  std::string path;        // below the project, "zones/z/instances/n"; or from "projects/" on
  std::string query = "";  // without "?"
};

// Calls Compute Engine for one project (driver-gce.md 4, 5). Errors of all calls: ApiError, whose code is
// Google's reason; those of ApiClient::CallJson.
class Compute {
 public:
  // Everything outlives it.
  Compute(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Endpoints& endpoints,
          std::string project, driver::cloud::api::Signer& signer, log::Logger logger,
          ClientSettings settings);

  Task<boost::json::object> Get(ComputeCall call);
  // These repeat a call with the same requestId, so that it is carried out once.
  Task<Operation> Insert(ComputeCall call, const boost::json::object& body);
  Task<Operation> Delete(ComputeCall call);

  // All pages of a list; `filter` may be empty. Error(kRetry): the zone cannot be reached.
  template <class T>
  Task<std::vector<T>> List(ComputeCall call, std::string filter, T (*read)(const boost::json::object&)) {
    std::string what = call.action;
    auto read_page = [this, call = std::move(call), filter = std::move(filter), read](std::string next) {
      return ReadPage<T>(call, filter, std::move(next), read);
    };
    return driver::cloud::api::ReadPages<T>(std::move(what), std::move(read_page));
  }

  // The operation as it is now. `place`: "global", "zones/us-central1-a". Errors: those of Get().
  Task<Operation> ReadAgain(std::string place, std::string operation);

 private:
  template <class T>
  Task<driver::cloud::api::Page<T>> ReadPage(ComputeCall call, std::string filter, std::string next,
                                             std::function<T(const boost::json::object&)> read) {
    std::string action = call.action;
    driver::cloud::api::ApiReply reply =
        co_await SendForPage(std::move(call), std::move(filter), std::move(next));
    co_return PageOf<T>(reply, action, read);
  }

  Task<driver::cloud::api::ApiReply> SendForPage(ComputeCall call, std::string filter, std::string next);
  Task<driver::cloud::api::ApiReply> Send(std::string method, ComputeCall call, std::string body);
  Task<Operation> Change(std::string method, ComputeCall call, std::string body);

  Random& random_;
  const Endpoints& endpoints_;
  std::string project_;
  driver::cloud::api::ApiClient client_;
};

}  // namespace nodepool::drivers::gce
