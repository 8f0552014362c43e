#include "drivers/openstack/testing/openstack_imposter.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <regex>

#include "async/deadline.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/text.h"

namespace nodepool::testing {

namespace json = boost::json;
using namespace openstack;
using net::HttpRequest;
using net::HttpResponse;

namespace {

constexpr const char* kFlavor = "081bc1e4-c34c-42be-8ce3-407b131586f6";
constexpr const char* kPrivateNetwork = "18670c80-bb08-4bcd-9ce3-0e5536646fbc";
constexpr const char* kPublicNetwork = "a43d269d-4465-463c-b095-40a8ff58faaa";

json::object Endpoint(const std::string& url) {
  return {{"id", "e"},
          {"interface", "public"},
          {"region_id", "RegionOne"},
          {"region", "RegionOne"},
          {"url", url}};
}

json::object ServiceEntry(const char* type, const std::string& url) {
  json::array endpoints;
  endpoints.push_back(Endpoint(url));
  return {{"type", type}, {"name", type}, {"id", "s"}, {"endpoints", std::move(endpoints)}};
}

bool IsWanted(const HttpRequest& request, const std::string& project) {
  const std::string& wanted = request.Parameter("project_id");
  return wanted.empty() || wanted == (project.empty() ? kProject : project);
}

}  // namespace

OpenstackImposter::OpenstackImposter(Loop& loop, std::string base) : loop_(loop), base_(std::move(base)) {
  AddImage("debian");
}

std::string OpenstackImposter::NewId() { return fmt::format("00000000-0000-4000-8000-{:012}", ++last_id_); }

int OpenstackImposter::Count(const std::string& method, const std::string& path) const {
  return static_cast<int>(std::ranges::count_if(
      calls_, [&](const HttpRequest& call) { return call.method == method && call.path == path; }));
}

std::map<std::string, int> OpenstackImposter::Counts() const {
  static const std::regex id("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}");
  std::map<std::string, int> counts;
  for (const HttpRequest& call : calls_)
    ++counts[call.method + " " + std::regex_replace(call.path, id, "ID")];
  return counts;
}

const HttpRequest* OpenstackImposter::LastCall(const std::string& method, const std::string& path) const {
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    if (call->method == method && call->path == path) return &*call;
  }
  return nullptr;
}

Task<HttpResponse> OpenstackImposter::Answer(HttpRequest request) {
  calls_.push_back(request);
  if (latency > Duration::zero()) co_await loop_.SleepFor(latency);
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (request.method != fault->method || !request.path.starts_with(fault->path)) continue;
    Fault now = *fault;
    if (--fault->times <= 0) faults_.erase(fault);
    if (now.has_effect) Dispatch(request, request.path);
    if (now.hangs) co_await loop_.SleepFor(std::chrono::hours(24));
    if (now.breaks) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
    HttpResponse response;
    response.status = now.status;
    response.body = now.body;
    response.headers = now.headers;
    co_return response;
  }
  co_return Dispatch(request, request.path);
}

HttpResponse OpenstackImposter::Dispatch(const HttpRequest& request, const std::string& path) {
  if (path.starts_with("/identity")) return Identity(request, path.substr(9));
  bool is_version = path == "/image" || path == "/image/";
  auto token = tokens_.find(request.Header("x-auth-token"));
  if (!is_version && (token == tokens_.end() || token->second <= loop_.SteadyNow())) {
    return NovaFault(401, "error", "The request you have made requires authentication.");
  }
  if (path.starts_with("/compute/v2.1")) return Compute(request, path.substr(13));
  if (path.starts_with("/network/v2.0")) return Network(request, path.substr(13));
  if (path.starts_with("/image")) return ImageService(request, path.substr(6));
  if (path.starts_with("/volume")) return Volumes(request, path.substr(7));
  return NovaFault(404, "itemNotFound", "The resource could not be found.");
}

HttpResponse OpenstackImposter::Identity(const HttpRequest& request, const std::string& path) {
  if (path == "" || path == "/") {
    json::object version{{"id", "v3.14"}, {"status", "stable"}};
    json::array links;
    links.push_back(json::object{{"rel", "self"}, {"href", "http://wrong.example/identity/v3/"}});
    version["links"] = std::move(links);
    json::array values;
    values.push_back(std::move(version));
    return Json({{"versions", {{"values", std::move(values)}}}}, 300);
  }
  if (path != "/v3/auth/tokens" || request.method != "POST") return Empty(404);
  if (request.body.find("wrong-password") != std::string::npos) {
    return NovaFault(401, "error", "The request you have made requires authentication.");
  }
  std::string text = fmt::format("token-{}", ++tokens_given);
  tokens_[text] = loop_.SteadyNow() + token_life;
  json::array catalog;
  catalog.push_back(ServiceEntry("compute", base_ + "/compute/v2.1"));
  catalog.push_back(ServiceEntry("network", base_ + "/network"));
  catalog.push_back(ServiceEntry("image", base_ + "/image"));
  if (has_volumes) catalog.push_back(ServiceEntry("volumev3", base_ + "/volume/v3/" + kProject));
  json::object token{{"expires_at", Iso8601(loop_.Now() + token_life)},
                     {"project", {{"id", kProject}, {"name", "ci"}}},
                     {"catalog", std::move(catalog)}};
  HttpResponse response = Json({{"token", std::move(token)}}, 201);
  response.headers.emplace_back("X-Subject-Token", text);
  return response;
}

HttpResponse OpenstackImposter::Compute(const HttpRequest& request, const std::string& path) {
  if (path == "" || path == "/") {
    return Json(
        {{"version", {{"id", "v2.1"}, {"status", "CURRENT"}, {"version", "2.93"}, {"min_version", "2.1"}}}});
  }
  if (path == "/servers/detail") return ListServers(request);
  if (path == "/servers" && request.method == "POST") return MakeServer(request);
  if (path == "/limits") {
    return Json({{"limits", {{"rate", json::array()}, {"absolute", Whole(limits)}}}});
  }
  if (path == "/flavors/detail") {
    json::array list;
    for (const auto& [id, flavor] : flavors) {
      list.push_back(
          json::object{{"id", id}, {"name", flavor.name}, {"ram", flavor.ram}, {"vcpus", flavor.cores}});
    }
    return Json({{"flavors", std::move(list)}});
  }
  if (path == "/os-availability-zone") {
    json::array list;
    for (const std::string& name : zones) {
      list.push_back(
          json::object{{"zoneName", name}, {"zoneState", {{"available", true}}}, {"hosts", nullptr}});
    }
    return Json({{"availabilityZoneInfo", std::move(list)}});
  }
  if (path.ends_with("/action")) return Json({{"output", "console line 1\nconsole line 2\n"}});
  if (path.starts_with("/servers/") && request.method == "DELETE") return RemoveServer(path.substr(9));
  return NovaFault(404, "itemNotFound", "The resource could not be found.");
}

HttpResponse OpenstackImposter::ListServers(const HttpRequest& request) {
  const std::string& marker = request.Parameter("marker");
  std::vector<std::string> gone;
  json::array list;
  std::string last;
  bool has_more = false;
  for (auto& [id, server] : servers) {
    if (!marker.empty() && id <= marker) continue;
    if (static_cast<int>(list.size()) == page_size) {
      has_more = true;
      break;
    }
    if (server.lists_until_gone >= 0 && IsDue(server.lists_until_gone)) {
      gone.push_back(id);
      continue;
    }
    if (Text(server.record, "status") == "BUILD" && IsDue(server.lists_until_active)) {
      server.record["status"] = server.becomes;
      if (!server.fault.empty())
        server.record["fault"] = json::object{{"message", server.fault}, {"code", 500}};
    }
    list.push_back(server.record);
    last = id;
  }
  for (const std::string& id : gone) {
    for (const json::value& volume : servers.at(id).record.at(kAttached).as_array()) {
      volumes.erase(Text(volume.as_object(), "id"));
    }
    servers.erase(id);
    std::erase_if(ports, [&id](const auto& entry) { return entry.second.device_id == id; });
  }
  json::object body{{"servers", std::move(list)}};
  if (has_more) {
    json::array links;
    links.push_back(
        json::object{{"rel", "next"}, {"href", base_ + "/compute/v2.1/servers/detail?marker=" + last}});
    body["servers_links"] = std::move(links);
  }
  return Json(std::move(body));
}

std::string OpenstackImposter::AddServer(json::object metadata, std::string status) {
  std::string id = NewId();
  std::string address = fmt::format("10.0.0.{}", last_id_ % 250 + 2);
  Port port;
  port.device_id = id;
  port.address = address;
  ports[NewId()] = port;
  json::array addresses;
  addresses.push_back(json::object{{"version", 4},
                                   {"addr", address},
                                   {"OS-EXT-IPS:type", "fixed"},
                                   {"OS-EXT-IPS-MAC:mac_addr", "fa:16:3e:00:00:01"}});
  Server server;
  server.record = {{"id", id},
                   {"name", "np"},
                   {"status", status},
                   {"OS-EXT-STS:task_state", nullptr},
                   {"metadata", std::move(metadata)},
                   {"hostId", "host-1"},
                   {"accessIPv4", ""},
                   {"accessIPv6", ""},
                   {"OS-EXT-AZ:availability_zone", "az1"},
                   {"flavor", {{"id", kFlavor}}},
                   {"addresses", {{"private", std::move(addresses)}}},
                   {kAttached, json::array()}};
  servers[id] = std::move(server);
  return id;
}

HttpResponse OpenstackImposter::MakeServer(const HttpRequest& request) {
  json::object wanted = json::parse(request.body).as_object().at("server").as_object();
  double limit = limits["maxTotalInstances"];
  if (limit >= 0 && static_cast<double>(servers.size()) >= limit) {
    return NovaFault(403, "forbidden", "Quota exceeded for instances: Requested 1, but already used all");
  }
  std::string zone = Text(wanted, "availability_zone");
  if (!zone.empty() && std::ranges::find(zones, zone) == zones.end()) {
    return NovaFault(400, "badRequest", "The requested availability zone is not available");
  }
  std::string id = AddServer(wanted.at("metadata").as_object(), "BUILD");
  Server& server = servers[id];
  if (wanted.contains("flavorRef")) server.record["flavor"] = json::object{{"id", wanted.at("flavorRef")}};
  server.record["name"] = wanted.at("name");
  if (wanted.contains("availability_zone")) {
    server.record["OS-EXT-AZ:availability_zone"] = wanted.at("availability_zone");
  }
  AddBootVolume(wanted, server);
  server.lists_until_active = next_lists_until_active;
  server.becomes = next_server_becomes;
  server.fault = next_server_fault;
  return Json({{"server", {{"id", id}, {"adminPass", "secret"}}}}, 202);
}

HttpResponse OpenstackImposter::RemoveServer(const std::string& id) {
  auto found = servers.find(id);
  if (found == servers.end() || found->second.lists_until_gone >= 0) {
    return NovaFault(404, "itemNotFound", "Instance " + id + " could not be found.");
  }
  if (failing_deletes > 0) {
    --failing_deletes;
    found->second.record["status"] = "ERROR";
    return Empty(204);
  }
  found->second.record["OS-EXT-STS:task_state"] = "deleting";
  found->second.lists_until_gone = 2;
  return Empty(204);
}

HttpResponse OpenstackImposter::Network(const HttpRequest& request, const std::string& path) {
  auto list = [](const char* name, json::array items) { return Json({{name, std::move(items)}}); };
  if (path == "/networks") {
    json::array networks;
    auto add = [&](const char* id, const char* name, bool is_external) {
      const std::string& wanted = request.Parameter("name");
      if (!wanted.empty() && wanted != name) return;
      networks.push_back(json::object{{"id", id}, {"name", name}, {"router:external", is_external}});
    };
    add(kPrivateNetwork, "private", false);
    if (shows_external_network) add(kPublicNetwork, "public", true);
    return list("networks", std::move(networks));
  }
  if (path == "/subnets") {
    json::array subnets;
    subnets.push_back(
        json::object{{"id", "s1"}, {"network_id", kPrivateNetwork}, {"gateway_ip", "10.0.0.1"}});
    return list("subnets", std::move(subnets));
  }
  if (path == "/routers") {
    json::array routers;
    routers.push_back(
        json::object{{"id", "r0"}, {"admin_state_up", true}, {"external_gateway_info", nullptr}});
    routers.push_back(json::object{
        {"id", "r1"}, {"admin_state_up", true}, {"external_gateway_info", {{"network_id", kPublicNetwork}}}});
    return list("routers", std::move(routers));
  }
  if (path == "/ports") {
    json::array items;
    for (const auto& [id, port] : ports) {
      const std::string& device = request.Parameter("device_id");
      const std::string& status = request.Parameter("status");
      if ((!device.empty() && device != port.device_id) || (!status.empty() && status != port.status))
        continue;
      if (!IsWanted(request, port.project)) continue;
      json::array fixed;
      fixed.push_back(json::object{{"ip_address", port.address}, {"subnet_id", "s1"}});
      items.push_back(json::object{{"id", id},
                                   {"network_id", kPrivateNetwork},
                                   {"mac_address", "fa:16:3e:00:00:01"},
                                   {"device_owner", port.device_owner},
                                   {"created_at", "2026-11-21T20:06:05Z"},
                                   {"fixed_ips", std::move(fixed)}});
    }
    return list("ports", std::move(items));
  }
  if (path.starts_with("/ports/") && request.method == "DELETE") {
    return Empty(ports.erase(path.substr(7)) > 0 ? 204 : 404);
  }
  if (path == "/floatingips" && request.method == "POST") return MakeFloatingIp(request);
  if (path == "/floatingips") {
    json::array items;
    for (auto& [id, ip] : floating_ips) {
      const std::string& address = request.Parameter("floating_ip_address");
      const std::string& port = request.Parameter("port_id");
      if ((!address.empty() && address != ip.address) || (!port.empty() && port != ip.port_id)) continue;
      if (!IsWanted(request, ip.project)) continue;
      bool is_active = IsDue(ip.lists_until_active) && !ip.port_id.empty();
      items.push_back(
          json::object{{"id", id},
                       {"floating_ip_address", ip.address},
                       {"fixed_ip_address", ports.contains(ip.port_id) ? ports.at(ip.port_id).address : ""},
                       {"status", is_active ? "ACTIVE" : "DOWN"},
                       {"port_id", ip.port_id.empty() ? json::value() : json::value(ip.port_id)}});
    }
    return list("floatingips", std::move(items));
  }
  if (path.starts_with("/floatingips/") && request.method == "DELETE") {
    return Empty(floating_ips.erase(path.substr(13)) > 0 ? 204 : 404);
  }
  return NovaFault(404, "NeutronError", "The resource could not be found.");
}

HttpResponse OpenstackImposter::MakeFloatingIp(const HttpRequest& request) {
  json::object wanted = json::parse(request.body).as_object().at("floatingip").as_object();
  std::string port_id = Text(wanted, "port_id");
  auto bound =
      std::ranges::find_if(floating_ips, [&](const auto& entry) { return entry.second.port_id == port_id; });
  if (bound != floating_ips.end()) {
    return Json({{"NeutronError",
                  {{"type", "FloatingIPPortAlreadyAssociated"},
                   {"message", "Cannot associate floating IP: that fixed IP already has one"}}}},
                409);
  }
  std::string id = NewId();
  FloatingIp ip;
  ip.address = fmt::format("203.0.114.{}", last_id_ % 250);
  ip.port_id = port_id;
  floating_ips[id] = ip;
  return Json(
      {{"floatingip",
        {{"id", id}, {"floating_ip_address", ip.address}, {"port_id", ip.port_id}, {"status", "DOWN"}}}},
      201);
}

Task<net::HttpReply> ImposterClient::Send(net::HttpCall call) {
  HttpRequest request;
  request.method = call.method;
  net::ParseTarget(std::string_view(call.url).substr(imposter_.base().size()), request);
  for (const auto& [name, value] : call.headers) {
    request.headers[Lower(name)] = value;
  }
  request.body = call.body;
  if (call.upload && call.upload->progress) call.upload->progress(2, 5);  // at once, and then no more
  SteadyTime deadline = loop_.SteadyNow() + call.timeouts.answer;
  std::string what = call.method + " " + net::UrlForLog(call.url);
  Outcome<HttpResponse> response =
      co_await Attempt(WithDeadline(loop_, deadline, what, imposter_.Answer(std::move(request))));
  if (FailedWith(response, Verdict::kRetry, Verdict::kTimedOut)) {
    throw net::HttpError(Verdict::kRetry, what + ": " + response.error().message(), true);
  }
  if (!response) response.error().Rethrow();
  net::HttpReply reply;
  reply.status = response->status;
  reply.body = std::move(response->body);
  for (const auto& [name, value] : response->headers) {
    reply.headers.emplace_back(Lower(name), value);
  }
  co_return reply;
}

}  // namespace nodepool::testing
