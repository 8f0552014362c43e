#include "drivers/libvirt/machine/choose_host.h"

#include <fmt/format.h>

#include "drivers/libvirt/placement/capacity.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::CreateParameters;

namespace {

using Chosen = std::expected<std::string, NoHost>;

// Where another node of the request is; none: there is none yet.
std::optional<std::string> HostOfRequest(const Site& site, const CreateParameters& parameters) {
  if (parameters.az) return parameters.az;
  if (parameters.request_id.str().empty()) return std::nullopt;
  for (const auto& [uuid, entry] : site.ledger.entries()) {
    if (entry.request == parameters.request_id) return entry.host;
  }
  return std::nullopt;
}

// What all nodes of the request take together.
Need NeedOfRequest(const Site& site, const CreateParameters& parameters, const Need& own) {
  Need whole{.instances = 0};
  for (const LabelName& type : parameters.request.node_types) {
    auto label = parameters.pool->labels.find(type);
    if (label == parameters.pool->labels.end()) continue;
    whole.Add(NeedOf(site, dynamic_cast<const LibvirtLabel&>(*label->second)));
  }
  return whole.instances > 1 ? whole : own;
}

std::vector<HostRoom> OnlyHost(std::vector<HostRoom> rooms, const std::string& name) {
  for (HostRoom& room : rooms) {
    if (room.name != name && room.unusable.empty()) {
      room.unusable = fmt::format("another node of the request is on host {}", name);
    }
  }
  return rooms;
}

Chosen Choose(const Site& site, const std::vector<HostRoom>& rooms, const CreateParameters& parameters,
              const Need& need) {
  Placement placement = site.config->placement;
  SameHost same = SameHostFor(site, dynamic_cast<const LibvirtLabel&>(*parameters.label));
  if (same == SameHost::kNo) return ChooseHost(rooms, need, placement);
  std::optional<std::string> host = HostOfRequest(site, parameters);
  Chosen together = host ? ChooseHost(OnlyHost(rooms, *host), need, placement)
                         : ChooseHost(rooms, NeedOfRequest(site, parameters, need), placement);
  if (together || same == SameHost::kRequire) return together;
  return ChooseHost(rooms, need, placement);
}

}  // namespace

SameHost SameHostFor(const Site& site, const LibvirtLabel& label) {
  if (site.config->same_host) return *site.config->same_host;
  const MachineNetwork& network = label.network ? *label.network : site.config->hosts.front().network;
  return network.kind == MachineNetwork::Kind::kBridge ? SameHost::kNo : SameHost::kRequire;
}

Task<Host*> ChooseHostFor(Site& site, const CreateParameters& parameters, Need need) {
  const auto& pool = dynamic_cast<const LibvirtPool&>(*parameters.pool);
  const auto& label = dynamic_cast<const LibvirtLabel&>(*parameters.label);
  co_await site.full_labels.AwaitChance(site.environment.loop, label.name);
  std::vector<HostRoom> rooms = co_await ReadRooms(site, pool, label, parameters.image_external_id);
  Chosen chosen = Choose(site, rooms, parameters, need);
  if (chosen) co_return &site.At(*chosen);
  bool is_forever = chosen.error().is_forever;
  if (!is_forever) site.full_labels.Add(label.name, site.environment.loop.SteadyNow());
  throw Error(is_forever ? Verdict::kInvalid : Verdict::kQuota,
              fmt::format("no host {} label {} ({})", is_forever ? "is large enough for" : "has room for",
                          label.name, chosen.error().reasons));
}

}  // namespace nodepool::drivers::libvirt
