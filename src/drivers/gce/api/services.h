#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/credentials.h"
#include "driver/cloud/api/json_calls.h"
#include "drivers/gce/config/gce_config.h"

namespace nodepool::drivers::gce {

using Token = driver::cloud::api::BearerToken;
using driver::cloud::api::CodeOf;

// Reads a refusal of Compute Engine or Cloud Storage: {"error": {"code", "message", "errors": [{"reason"}]}}.
// The fault's code is the reason, which decides its verdict (driver-gce.md 17).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// What codes of failed operations and reasons of refusals mean; of several errors the last of these counts.
enum class Meaning {
  kOther,
  kNotReady,     // another change of the resource is in progress
  kBadSettings,  // refused again: it names something that does not exist, or is not well formed
  kQuota,        // a limit of the project has been reached
  kNoCapacity,   // there is no machine or no address of that kind in the zone now
};
// `text`: of the same error.
Meaning MeaningOf(std::string_view code, std::string_view text = "");

// The metric in "Quota 'CPUS' exceeded. Limit: 8.0 in region us-central1."; empty: none.
std::string MetricIn(std::string_view text);

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

// What all clients of Google's services have. `repeats`: of a call after a passing fault.
driver::cloud::api::ApiClient::Options ClientOptions(int repeats,
                                                     driver::cloud::api::CallMetrics metrics = {});

// Why a page of a list is not complete; empty: it is.
std::string FaultOfPage(const boost::json::object& answer);
// Lists of Compute Engine and Cloud Storage.
inline constexpr driver::cloud::api::ListFormat kLists{"items", "nextPageToken", "pageToken", &FaultOfPage};

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
  Compute(const driver::cloud::AdapterEnvironment& environment, net::HttpClient& http,
          const Endpoints& endpoints, const GceConfig& config, driver::cloud::api::Signer& signer,
          log::Logger logger);

  Task<boost::json::object> Get(ComputeCall call);
  // POST with a body, or DELETE. A repeated call has the same requestId, so that it is carried out once.
  Task<Operation> Change(std::string method, ComputeCall call, boost::json::object body = {});

  // All pages of a list; `filter` may be empty. Error(kRetry): the zone cannot be reached.
  template <class T>
  Task<std::vector<T>> List(ComputeCall call, const std::string& filter,
                            T (*read)(const boost::json::object&)) {
    return driver::cloud::api::CallForList<T>(client_, ListRequest(std::move(call), filter), kLists, read);
  }

  // The operation as it is now. `place`: "global", "zones/us-central1-a". Errors: those of Get().
  Task<Operation> ReadAgain(std::string place, std::string operation);

 private:
  driver::cloud::api::ApiRequest RequestFor(std::string method, ComputeCall call) const;
  driver::cloud::api::ApiRequest ListRequest(ComputeCall call, const std::string& filter) const;

  Random& random_;
  const Endpoints& endpoints_;
  std::string project_;
  driver::cloud::api::ApiClient client_;
};

// Gets a provider's tokens (driver-gce.md 3). The files are read anew each time.
class TokenFetcher {
 public:
  // `file`: the one that the provider's section names; none: GOOGLE_APPLICATION_CREDENTIALS, that of gcloud
  // if it exists, or the metadata server. Everything outlives the fetcher.
  TokenFetcher(const driver::DriverEnvironment& environment, net::HttpClient& http,
               const Endpoints& endpoints, std::optional<std::string> file, Variables variables,
               log::Logger logger);

  // Error(kRetry): what is configured cannot be used, or the service did not answer, or with something else;
  // ApiError(kRetry): it refused. All this says nothing about the calls that need the token.
  Task<Token> Fetch();

 private:
  std::string PathOfFile() const;
  Task<Token> FetchOnce();
  Task<Token> Impersonate(std::string url, std::string token);

  const Endpoints& endpoints_;
  std::optional<std::string> file_;
  Variables variables_;
  driver::cloud::api::TokenClient client_;
};

}  // namespace nodepool::drivers::gce
