#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/async_cache.h"
#include "async/loop.h"
#include "base/json_fields.h"
#include "base/log/logging.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/credentials.h"
#include "driver/cloud/api/json_calls.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/config/cloud_config.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::openstack {

// A token of the cloud, valid for a limited time, and the catalog of services.
struct Token {
  std::string text;  // secret; empty: the cloud needs none
  WallTime expires = WallTime::max();
  std::string project_id;
  boost::json::array catalog;
};

// A call with this cloud's settings: TLS, time-outs.
net::HttpCall NewCall(const CloudConfig& cloud, std::string method, std::string url);

// Error(kRetry): the answer has no token. `where` begins its message.
Token ReadToken(const net::HttpReply& reply, std::string_view where);

// Gets the session's token and adds it to calls (driver-openstack.md 4).
class TokenSource : public driver::cloud::api::Signer {
 public:
  // Everything outlives the source.
  TokenSource(Loop& loop, net::HttpClient& http, const CloudConfig& cloud);

  Task<std::shared_ptr<const Token>> Get() { return tokens_.Get(); }
  Task<Renew> Sign(net::HttpCall& call) override;

 private:
  Task<Token> Fetch();
  Task<net::HttpReply> Send(net::HttpCall call);
  Task<std::string> TokenUrl();
  Task<std::string> DiscoverUrl();

  net::HttpClient& http_;
  const CloudConfig& cloud_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  std::string url_;  // once known
  driver::cloud::api::CredentialSource<Token> tokens_;
};

// A service's URL and its range of microversions.
struct Endpoint {
  std::string url;  // without a trailing slash; paths of calls are appended
  VersionNumber min;
  VersionNumber max;  // {0, 0}: no microversions
};

// Finds the services: in the catalog or the configuration, and then, if needed, by their version documents
// (driver-openstack.md 5.2). Reads each once.
class Endpoints {
 public:
  // Everything outlives this.
  Endpoints(net::HttpClient& http, const CloudConfig& cloud, TokenSource& tokens);

  // Null: the cloud does not have the service.
  Task<std::shared_ptr<const Endpoint>> Of(Service service);

 private:
  Task<std::shared_ptr<const Endpoint>> Discover(Service service);
  Task<std::vector<Version>> Ask(std::string url, std::string token);

  net::HttpClient& http_;
  const CloudConfig& cloud_;
  TokenSource& tokens_;
  AsyncCache<Service, std::shared_ptr<const Endpoint>> known_;
};

// The URL of a service in the catalog, by type or alias, name, region and interface
// (driver-openstack.md 5.1); none: the cloud does not have it.
std::optional<std::string> FindEndpoint(const boost::json::array& catalog, const CloudConfig& cloud,
                                        Service service);

// The max. age of a list used for counting and cleaning.
constexpr Duration kListAge = std::chrono::seconds(5);

// A call of a service.
struct ApiCall {
  Service service = Service::kCompute;
  std::string method = "GET";
  std::string path;   // below the service's address: "/servers/detail"
  std::string query;  // without "?"
  std::optional<boost::json::value> body;
  std::optional<net::HttpUpload> upload;
  std::optional<Duration> upload_limit;  // for the whole upload
  VersionNumber microversion;            // the highest to name; {0, 0}: none is named
  bool may_be_repeated = false;          // a POST that creates nothing; other methods always may
};

using driver::cloud::api::ApiReply;

// Calls one cloud's services under one login: finds the services and names microversions; ApiClient does the
// rest (D-90).
class Session {
 public:
  struct Options {
    std::optional<double> rate;  // seconds between calls that change something (D-90)
    driver::cloud::api::CallMetrics metrics;
  };

  // Everything outlives the session.
  Session(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, CloudConfig cloud,
          Options options);

  // Errors: those of ApiClient::CallJson; Error(kInvalid) when the cloud does not have the service.
  Task<ApiReply> Call(ApiCall call);

  // False: there is nothing at that path.
  Task<bool> Delete(Service service, std::string path, VersionNumber microversion = {});

  Task<bool> Has(Service service);
  // Whether calls to compute may name that microversion.
  Task<bool> TakesMicroversion(VersionNumber version);
  Task<std::string> ProjectId();

  const CloudConfig& cloud() const { return cloud_; }
  Loop& loop() { return loop_; }

 private:
  std::string MicroversionFor(const ApiCall& call, const Endpoint& endpoint) const;
  net::HttpCall HttpCallFor(ApiCall call, const Endpoint& endpoint) const;

  Loop& loop_;
  CloudConfig cloud_;
  TokenSource tokens_;
  Endpoints endpoints_;
  driver::cloud::api::ApiClient client_;
};

using driver::cloud::api::StatusOf;

// Parses a refusal of any service (driver-openstack.md 6.5, 7.6).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// Whether the cloud's message means that a quota is exhausted (driver-openstack.md 7.6, 7.7).
bool MentionsQuota(std::string_view text);

// The name of an API call in metrics, by its path below the service's version: "/servers/ID"
// is "server", "/servers/ID/action" "server_action", "/servers/detail"
// "servers_detail", "" "discovery" (driver-openstack.md 18).
std::string ApiName(const std::string& path);

// The query of the next page of a list, or empty (driver-openstack.md 6.7).
std::string NextQuery(const ApiReply& page, const std::string& collection);

// Takes a std::function because GCC 14.2 crashes on a coroutine of a header that has a pointer to function in
// whose type a type of an unnamed namespace occurs (tools/check-platforms).
template <class T>
Task<driver::cloud::api::Page<T>> ReadPage(Session& session, ApiCall call, std::string collection,
                                           std::function<T(const boost::json::object&)> read) {
  ApiReply reply = co_await session.Call(std::move(call));
  const boost::json::array* entries = ArrayIn(reply.body, collection);
  if (entries == nullptr) {
    throw Error(Verdict::kRetry, "the list of " + collection + " has an unknown form");
  }
  driver::cloud::api::Page<T> page;
  page.bytes = reply.bytes;
  driver::cloud::api::AddEntries<T>(entries, read, page);
  if (!entries->empty()) page.next = NextQuery(reply, collection);
  co_return page;
}

// Reads a list page by page, each entry with `read`. Error(kFail) if the pages never end.
template <class T>
Task<std::vector<T>> List(Session& session, ApiCall call, std::string collection,
                          T (*read)(const boost::json::object&)) {
  auto read_page = [&session, call = std::move(call), collection, read](std::string next) {
    ApiCall page_call = call;
    if (!next.empty()) page_call.query = std::move(next);
    return ReadPage<T>(session, std::move(page_call), collection, read);
  };
  return driver::cloud::api::ReadPages<T>(collection, std::move(read_page));
}

}  // namespace nodepool::drivers::openstack
