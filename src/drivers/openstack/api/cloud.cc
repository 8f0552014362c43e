#include "drivers/openstack/api/cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/openstack/api/session.h"
#include "net/tcp_probe.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr int kProbedPort = 22;
constexpr Duration kFloatingIpLimit = std::chrono::seconds(60);
constexpr Duration kProbeLimit = std::chrono::seconds(5);

Task<> WaitFloatingIp(driver::cloud::api::ListCache<FloatingIps>& floating_ips, std::string id) {
  auto is_active = [&id](const FloatingIps& ips) {
    auto found = ips.find(id);
    return found != ips.end() && found->second.status == "ACTIVE";
  };
  co_await floating_ips.Until(is_active);
}

// Creates a floating address for the server and adds it to the server's addresses.
Task<> AddFloatingIp(Addressing& addressing, MachineReport& machine, const NetworkRoles& roles,
                     Server& server) {
  machine.SetState("creating floating ip");
  std::vector<Port> ports = co_await ListPortsOf(addressing.session, server.id);
  std::optional<FloatingTarget> target = ChooseTarget(std::move(ports), roles);
  if (!target) co_return;
  std::string network = roles.floating_sources.front();
  FloatingTarget wanted = *target;
  FloatingIp ip = co_await CreateFloatingIp(addressing.session, std::move(network), std::move(wanted));
  addressing.floating_ip_of[server.id] = ip.id;
  machine.SetState("attaching floating ip");
  if (ip.status != "ACTIVE") {
    SteadyTime deadline = addressing.session.loop().SteadyNow() + kFloatingIpLimit;
    std::string what = "the floating IP " + ip.address + " becoming active";
    bool is_active = co_await EndsBy(addressing.session.loop(), deadline, what,
                                     WaitFloatingIp(addressing.floating_ips, ip.id));
    // The deletion of the server removes the address, too.
    if (!is_active) throw LaunchError(LaunchError::Kind::kNetwork, what + " timed out");
  }
  AddTo(server, {ip, target->mac});
}

// Chooses the first of several equally good addresses that accepts a connection (driver-openstack.md 9.3).
Task<> TryAddresses(Addressing& addressing, std::vector<std::string> addresses, Server& server) {
  SteadyTime deadline = addressing.session.loop().SteadyNow() + kProbeLimit;
  std::optional<std::string> open = co_await addressing.probe(std::move(addresses), deadline);
  for (Address& address : server.addresses) address.accepts = address.text == open;
}

Task<std::vector<FloatingAddress>> FindBySharedList(Addressing& addressing, Server server) {
  std::vector<FloatingAddress> found;
  bool has_network = co_await addressing.session.Has(Service::kNetwork);
  if (!has_network) co_return found;
  auto listing = co_await addressing.floating_ips.NotOlderThan(kListAge);
  bool may_have = std::ranges::any_of(*listing.items, [&server](const auto& entry) {
    const FloatingIp& ip = entry.second;
    auto leads_to = [&ip](const Address& address) { return address.text == ip.fixed_ipv4; };
    return !ip.port_id.empty() && std::ranges::any_of(server.addresses, leads_to);
  });
  if (may_have) found = co_await FindFloatingIpsOfPorts(addressing.session, server.id);
  co_return found;
}

}  // namespace

Addressing::Addressing(Session& of_cloud, TaskGroup& tasks, Random& random, const std::string& provider,
                       log::Logger for_faults, Probe to_try)
    : session(of_cloud),
      logger(std::move(for_faults)),
      floating_ips(tasks, random, log::Logger("nodepool.OpenStackAdapter"),
                   "floating IPs of provider " + provider, [this] { return ListFloatingIps(session); }),
      network_roles([this] { return ReadNetworkRoles(session); }),
      has_ipv6(HasIpv6Route()),
      probe(std::move(to_try)) {
  if (probe) return;
  probe = [this](std::vector<std::string> addresses, SteadyTime deadline) {
    return net::FirstToAccept(session.loop(), std::move(addresses), kProbedPort, deadline);
  };
}

Task<ChosenAddresses> FindAddresses(Addressing& addressing, MachineReport& machine, bool wants_floating_ip,
                                    Server& server) {
  const CloudConfig& settings = addressing.session.cloud();
  NetworkRoles roles = co_await addressing.network_roles.Get();
  auto choose = [&] { return ChooseAddresses(server, roles, settings, addressing.has_ipv6); };
  ChosenAddresses addresses = choose();
  bool lacks_public = settings.has_floating_ips && !settings.is_private && addresses.public_ipv4.empty();
  if (wants_floating_ip && NeedsFloatingIp(server, addresses, roles, settings)) {
    co_await AddFloatingIp(addressing, machine, roles, server);
    addresses = choose();
  } else if (lacks_public) {
    std::vector<FloatingAddress> hidden = co_await FindHiddenFloatingIps(addressing, server);
    for (const FloatingAddress& floating : hidden) AddTo(server, floating);
    addresses = choose();
  }
  if (!addresses.undecided.empty()) {
    std::vector<std::string> undecided = addresses.undecided;
    co_await TryAddresses(addressing, std::move(undecided), server);
    addresses = choose();
  }
  co_return addresses;
}

Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Addressing& addressing, Server server) {
  std::string id = server.id;
  Outcome<std::vector<FloatingAddress>> found =
      co_await Attempt(FindBySharedList(addressing, std::move(server)));
  if (found) co_return std::move(*found);
  addressing.logger.Warning("The floating IPs of server {} could not be read: {}", id,
                            found.error().message());
  co_return std::vector<FloatingAddress>();
}

namespace {

struct NamedEntry {
  std::string id;
  std::string name;
  std::string status;
};

NamedEntry ReadNamedEntry(const json::object& entry) {
  return {TextIn(entry, "id"), TextIn(entry, "name"), TextIn(entry, "status")};
}

struct ZoneEntry {
  std::string name;
  bool is_available = false;
};

ZoneEntry ReadZone(const json::object& entry) {
  const json::object* state = ObjectIn(entry, "zoneState");
  return {TextIn(entry, "zoneName"), state != nullptr && TruthIn(*state, "available")};
}

// Whether a text may be an id, so that it is also looked up as one.
bool LooksLikeId(const std::string& text) {
  bool is_hex = std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) || c == '-'; });
  return is_hex && text.size() >= 32;
}

// Gets one object; nullopt: there is none.
Task<std::optional<json::object>> GetOne(Session& session, Service service, std::string path,
                                         std::string member) {
  ApiCall call;
  call.service = service;
  call.path = std::move(path);
  Outcome<ApiReply> reply = co_await Attempt(session.Call(std::move(call)));
  int status = StatusOf(reply);
  if (status == 404 || status == 400 || status == 403) co_return std::nullopt;
  if (!reply) reply.error().Rethrow();
  const json::object* one = member.empty() ? reply->body.if_object() : ObjectIn(reply->body, member);
  if (one == nullptr) co_return std::nullopt;
  co_return *one;
}

}  // namespace

Lookups::Lookups(Session& session)
    : session_(session),
      networks_([this](std::string name) { return FindNetwork(std::move(name)); }),
      flavors_([this] { return ReadFlavors(); }),
      zones_([this] { return ReadZones(); }) {}

void Lookups::Clear() {
  networks_.Clear();
  flavors_.Clear();
  zones_.Clear();
}

Task<std::string> Lookups::NetworkId(std::string name_or_id) { return networks_.Get(std::move(name_or_id)); }

Task<std::vector<Flavor>> Lookups::Flavors() { return flavors_.Get(); }

Task<> Lookups::RefreshFlavors() {
  flavors_.Clear();
  co_await flavors_.Get();
}

Task<std::vector<std::optional<std::string>>> Lookups::Zones() { return zones_.Get(); }

Task<std::vector<Flavor>> Lookups::ReadFlavors() {
  std::vector<Flavor> flavors = co_await ListFlavors(session_);
  known_flavors_ = flavors;
  co_return flavors;
}

Task<std::string> Lookups::FindNetwork(std::string name_or_id) {
  if (LooksLikeId(name_or_id)) {
    std::string path = "/networks/" + name_or_id;
    std::optional<json::object> network =
        co_await GetOne(session_, Service::kNetwork, std::move(path), "network");
    if (network) co_return TextIn(*network, "id");
  }
  ApiCall call;
  call.service = Service::kNetwork;
  call.path = "/networks";
  call.query = "name=" + PercentEncoded(name_or_id);
  std::vector<NamedEntry> found = co_await List(session_, std::move(call), "networks", &ReadNamedEntry);
  std::erase_if(found, [&name_or_id](const NamedEntry& network) { return network.name != name_or_id; });
  if (found.size() == 1) co_return found.front().id;
  throw Error(Verdict::kInvalid, fmt::format("{} network {} in cloud {}",
                                             found.empty() ? "Unable to find" : "Multiple matches found for",
                                             Excerpt(name_or_id), session_.cloud().name));
}

Task<std::vector<std::optional<std::string>>> Lookups::ReadZones() {
  ApiCall call;
  call.path = "/os-availability-zone";
  Outcome<std::vector<ZoneEntry>> entries =
      co_await Attempt(List(session_, std::move(call), "availabilityZoneInfo", &ReadZone));
  // A cloud that refuses to list its zones chooses one itself (driver-openstack.md 12.2).
  if (!entries && StatusOf(entries) == 0) entries.error().Rethrow();
  std::vector<std::optional<std::string>> zones;
  for (const ZoneEntry& entry : entries.value_or(std::vector<ZoneEntry>())) {
    if (entry.is_available) zones.emplace_back(entry.name);
  }
  if (zones.empty()) zones.emplace_back(std::nullopt);
  co_return zones;
}

namespace {

// The filter for images by name; the image service splits a list at commas that are not quoted.
std::string NameFilter(const std::vector<std::string>& names) {
  if (names.size() == 1) return "name=" + PercentEncoded(names.front()) + "&";
  bool can_be_quoted = std::ranges::none_of(
      names, [](const std::string& name) { return name.find_first_of("\"\\") != std::string::npos; });
  if (!can_be_quoted) return "";
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "\"" : ",\"") + name + "\"";
  return "name=" + PercentEncoded("in:" + list) + "&";
}

}  // namespace

Task<std::map<std::string, std::vector<std::string>>> FindActiveImages(Session& session,
                                                                       std::vector<std::string> names) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const std::string& name : names) {
    if (!LooksLikeId(name)) continue;
    std::string path = "/images/" + name;
    std::optional<json::object> image = co_await GetOne(session, Service::kImage, std::move(path), "");
    if (image && TextIn(*image, "status") == "active") ids[name].push_back(TextIn(*image, "id"));
  }
  std::erase_if(names, [&ids](const std::string& name) { return ids.contains(name); });
  if (names.empty()) co_return ids;
  ApiCall call;
  call.service = Service::kImage;
  call.path = "/images";
  call.query = NameFilter(names) + "status=active";
  std::vector<NamedEntry> found = co_await List(session, std::move(call), "images", &ReadNamedEntry);
  for (const NamedEntry& image : found) {
    if (image.status == "active" && std::ranges::find(names, image.name) != names.end())
      ids[image.name].push_back(image.id);
  }
  co_return ids;
}

namespace {

Flavor ReadFlavorEntry(const boost::json::object& entry) {
  Flavor flavor;
  flavor.id = TextIn(entry, "id");
  flavor.name = TextIn(entry, "name");
  flavor.vcpus = static_cast<int>(NumberIn(entry, "vcpus"));
  flavor.ram = static_cast<int>(NumberIn(entry, "ram"));
  return flavor;
}

std::string NamesOf(const std::vector<Flavor>& flavors) {
  constexpr std::size_t kMaxNames = 20;
  std::vector<std::string> names;
  for (const Flavor& flavor : flavors) {
    if (names.size() < kMaxNames) names.push_back(flavor.name);
  }
  if (flavors.size() > kMaxNames) names.emplace_back("...");
  return Join(names, ", ");
}

}  // namespace

Task<std::vector<Flavor>> ListFlavors(Session& session) {
  ApiCall call;
  call.path = "/flavors/detail";
  call.query = "is_public=None";
  call.microversion = {2, 61};
  std::vector<Flavor> flavors = co_await List(session, std::move(call), "flavors", &ReadFlavorEntry);
  std::ranges::sort(flavors, {}, [](const Flavor& flavor) { return std::pair(flavor.ram, flavor.name); });
  co_return flavors;
}

const Flavor& ChooseFlavor(const std::vector<Flavor>& flavors, const OpenstackLabel& label) {
  for (const Flavor& flavor : flavors) {
    bool is_fit = false;
    if (label.min_ram > 0) {
      is_fit = flavor.ram >= label.min_ram &&
               flavor.name.find(label.flavor_name.value_or("")) != std::string::npos;
    } else if (label.flavor_name) {
      is_fit = flavor.name == *label.flavor_name || flavor.id == *label.flavor_name;
    }
    if (is_fit) return flavor;
  }
  std::string what = label.min_ram > 0
                         ? fmt::format("Unable to find flavor with min ram: {}", label.min_ram)
                         : fmt::format("Unable to find flavor: {}", label.flavor_name.value_or(""));
  throw Error(Verdict::kInvalid,
              fmt::format("{} (label {}); the cloud has: {}", what, label.name, NamesOf(flavors)));
}

namespace {

std::set<std::string> ImagesToFind(const OpenstackProviderConfig& config) {
  std::set<std::string> names;
  for (const auto& [key, image] : config.cloud_images) {
    if (!image.is_id) names.insert(image.external_name);
  }
  return names;
}

}  // namespace

Cloud::Cloud(const driver::cloud::AdapterEnvironment& environment, const OpenstackProviderConfig& provider,
             net::HttpClient& http, TaskGroup& tasks, log::Logger for_faults, Addressing::Probe probe)
    : config(provider),
      logger(std::move(for_faults)),
      session(environment.loop, environment.blocking_pool, environment.random, http, config.cloud_config,
              Session::Options{config.rate, {environment.observer, config.name, "openstack"}}),
      lookups(session),
      images(session, tasks, environment.random, ImagesToFind(config),
             [&framework = environment.framework] { framework.CapacityChanged(); }),
      servers(tasks, environment.random, log::Logger("nodepool.OpenStackAdapter"),
              "servers of provider " + config.name.str(), [this] { return ListServers(session); }),
      addressing(session, tasks, environment.random, config.name.str(), logger, std::move(probe)) {}

void Cloud::DropLookups() {
  lookups.Clear();
  images.Clear();
  addressing.network_roles.Clear();
}

}  // namespace nodepool::drivers::openstack
