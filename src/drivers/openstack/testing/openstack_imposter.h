#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "async/loop.h"
#include "net/http/http.h"
#include "net/http/http_client.h"

namespace nodepool::testing::openstack {

// Answers of an OpenStack.

inline constexpr const char* kProject = "9e6b19cfd71541fb91c6ec097a75cc0a";
inline constexpr const char* kAttached = "os-extended-volumes:volumes_attached";

inline net::HttpResponse Json(boost::json::value value, int status = 200) {
  net::HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = boost::json::serialize(value);
  return response;
}

inline net::HttpResponse Empty(int status) {
  net::HttpResponse response;
  response.status = status;
  return response;
}

// As nova, neutron and glance refuse.
inline net::HttpResponse NovaFault(int status, const std::string& kind, const std::string& message) {
  return Json({{kind, {{"code", status}, {"message", message}}}}, status);
}

// Limits as whole numbers.
inline boost::json::object Whole(const std::map<std::string, double>& limits) {
  boost::json::object absolute;
  for (const auto& [name, limit] : limits) absolute[name] = static_cast<std::int64_t>(limit);
  return absolute;
}

// Decrements the count; true once it has reached zero.
inline bool IsDue(int& count) {
  if (count > 0) --count;
  return count == 0;
}

// Empty: there is no such text.
inline std::string Text(const boost::json::object& object, const char* key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

}  // namespace nodepool::testing::openstack

namespace nodepool::testing {

// An in-process OpenStack: the parts of keystone, nova, neutron, glance and cinder that Nodepool uses, with
// answers in the form of real ones. It records every call and simulates the faults that a test wants.
//
// All services are below one address: <base>/identity, /compute, /network, /image, /volume. Bind it to a
// net::HttpServer with Answer(), or call it without a network through ImposterClient.
class OpenstackImposter {
 public:
  OpenstackImposter(Loop& loop, std::string base);

  void SetBase(std::string base) { base_ = std::move(base); }
  const std::string& base() const { return base_; }

  Task<net::HttpResponse> Answer(net::HttpRequest request);

  // --- Recorded calls ---------------------------------------------------------
  const std::vector<net::HttpRequest>& calls() const { return calls_; }
  void ClearCalls() { calls_.clear(); }
  // The number of these calls; `path` is relative to the base and has real ids.
  int Count(const std::string& method, const std::string& path) const;
  // The number of each kind of call; ids are replaced by "ID".
  std::map<std::string, int> Counts() const;
  const net::HttpRequest* LastCall(const std::string& method, const std::string& path) const;

  // --- Faults -----------------------------------------------------------------
  struct Fault {
    std::string method;
    std::string path;  // prefix, below the base
    int status = 500;
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers;
    int times = 1;
    bool hangs = false;       // no answer
    bool breaks = false;      // the connection breaks (ImposterClient only)
    bool has_effect = false;  // the call is carried out nevertheless
  };
  Duration latency{};  // of every answer
  void Add(Fault fault) { faults_.push_back(std::move(fault)); }
  void DropTokens() { tokens_.clear(); }

  // --- Contents ---------------------------------------------------------------
  struct Server {
    boost::json::object record;
    int lists_until_active = 1;  // how many lists show it in BUILD
    std::string becomes = "ACTIVE";
    std::string fault;
    int lists_until_gone = -1;  // after its deletion
  };
  struct FloatingIp {
    std::string address;
    std::string port_id;
    int lists_until_active = 1;
    std::string project;  // empty: ours
  };
  struct Port {
    std::string device_id;
    std::string device_owner = "compute:az1";
    std::string status = "ACTIVE";
    std::string address;
    std::string project;  // empty: ours
  };
  struct Image {
    boost::json::object record;
    std::string contents;
    int reads_until_active = 1;
  };

  struct Volume {
    std::string status = "available";
    int gigabytes = 1;
    boost::json::object metadata;
  };

  std::map<std::string, Server> servers;
  std::map<std::string, Port> ports;
  std::map<std::string, FloatingIp> floating_ips;
  std::map<std::string, Image> images;
  std::map<std::string, Volume> volumes;
  std::map<std::string, double> limits = {
      {"maxTotalInstances", 10}, {"maxTotalCores", 40}, {"maxTotalRAMSize", 81920}};
  std::map<std::string, double> volume_limits = {{"maxTotalVolumes", 20}, {"maxTotalVolumeGigabytes", -1}};
  struct Flavor {
    std::string name;
    int cores = 1;
    int ram = 2048;
  };
  std::map<std::string, Flavor> flavors = {{"081bc1e4-c34c-42be-8ce3-407b131586f6", {"m1.small", 1, 2048}},
                                           {"big", {"m1.large", 4, 8192}}};
  std::vector<std::string> zones = {"az1", "az2"};
  Duration token_life = std::chrono::hours(1);
  std::string next_server_becomes = "ACTIVE";  // of servers to be made
  std::string next_server_fault;
  int next_lists_until_active = 1;
  int failing_deletes = 0;  // deletions that leave the server in ERROR
  int page_size = 1000;
  bool has_volumes = true;
  bool fails_imports = false;
  bool shows_external_network = true;  // otherwise only a router shows it
  int tokens_given = 0;

  std::string AddServer(boost::json::object metadata, std::string status = "ACTIVE");
  std::string AddImage(std::string name);

 private:
  using Response = net::HttpResponse;
  using Request = net::HttpRequest;

  Response Dispatch(const Request& request, const std::string& path);
  Response Identity(const Request& request, const std::string& path);
  Response Compute(const Request& request, const std::string& path);
  Response Network(const Request& request, const std::string& path);
  Response ImageService(const Request& request, const std::string& path);
  Response Volumes(const Request& request, const std::string& path);
  Response ListServers(const Request& request);
  Response MakeServer(const Request& request);
  Response RemoveServer(const std::string& id);
  Response MakeFloatingIp(const Request& request);
  void AddBootVolume(const boost::json::object& wanted, Server& server);

  std::string NewId();

  Loop& loop_;
  std::string base_;
  std::map<std::string, SteadyTime> tokens_;
  std::deque<Fault> faults_;
  std::vector<Request> calls_;
  int last_id_ = 0;
};

// Calls an imposter without a network; for tests in virtual time.
class ImposterClient : public net::HttpClient {
 public:
  explicit ImposterClient(Loop& loop, OpenstackImposter& imposter) : loop_(loop), imposter_(imposter) {}
  Task<net::HttpReply> Send(net::HttpCall call) override;

 private:
  Loop& loop_;
  OpenstackImposter& imposter_;
};

}  // namespace nodepool::testing
