#include "drivers/openstack/api/lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::cloud::api::PercentEncoded;

namespace {

struct Named {
  std::string id;
  std::string name;
  std::string status;
};

Named ReadNamed(const json::object& entry) {
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
  std::vector<Named> found = co_await List(session_, std::move(call), "networks", &ReadNamed);
  std::erase_if(found, [&name_or_id](const Named& network) { return network.name != name_or_id; });
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
  std::vector<Named> found = co_await List(session, std::move(call), "images", &ReadNamed);
  for (const Named& image : found) {
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

}  // namespace nodepool::drivers::openstack
