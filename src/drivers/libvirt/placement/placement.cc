#include "drivers/libvirt/placement/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "async/deadline.h"

namespace nodepool::drivers::libvirt {

namespace {

struct Measure {
  const char* name;
  double Need::*amount;
};

constexpr Measure kMeasures[] = {{"instances", &Need::instances},
                                 {"cores", &Need::cores},
                                 {"MiB of memory", &Need::memory},
                                 {"GiB of disk", &Need::disk}};

// What the host lacks for the need beside `used`; empty: nothing.
std::string Shortage(const Need& limit, const Need& used, const Need& need) {
  for (const auto& [name, amount] : kMeasures) {
    double free = limit.*amount - used.*amount;
    if (need.*amount <= free) continue;
    return fmt::format("{:.0f} of {:.0f} {} free, needs {:.0f}", std::max(free, 0.0), limit.*amount, name,
                       need.*amount);
  }
  return "";
}

// The part of its scarcest resource that is in use, 0 to 1.
double Load(const HostRoom& host) {
  double load = 0;
  for (const auto& [name, amount] : kMeasures) {
    if (host.limit.*amount > 0) load = std::max(load, host.used.*amount / (host.limit.*amount));
  }
  return load;
}

// Why the machine cannot be made there now; empty: it can.
std::string Obstacle(const HostRoom& host, const Need& need) {
  if (!host.unusable.empty()) return host.unusable;
  if (!host.has_image && !host.can_get_image) return "it does not have the image";
  return Shortage(host.limit, host.used, need);
}

NoHost Explain(const std::vector<HostRoom>& hosts, const Need& need) {
  NoHost none;
  // A host that cannot be used now may be large enough.
  none.is_forever = !hosts.empty() && std::ranges::all_of(hosts, [&](const HostRoom& host) {
    return host.unusable.empty() && !Shortage(host.limit, Need{.instances = 0}, need).empty();
  });
  std::vector<std::string> reasons;
  for (const HostRoom& host : hosts) reasons.push_back(host.name + ": " + Obstacle(host, need));
  none.reasons = fmt::format("{}", fmt::join(reasons, "; "));
  return none;
}

}  // namespace

std::expected<std::string, NoHost> ChooseHost(const std::vector<HostRoom>& hosts, const Need& need,
                                              Placement placement) {
  const HostRoom* best = nullptr;
  auto is_better = [&](const HostRoom& host) {
    if (best == nullptr) return true;
    if (host.has_image != best->has_image) return host.has_image;
    double load = Load(host), of_best = Load(*best);
    if (load == of_best) return host.name < best->name;
    return placement == Placement::kSpread ? load < of_best : load > of_best;
  };
  for (const HostRoom& host : hosts) {
    if (Obstacle(host, need).empty() && is_better(host)) best = &host;
  }
  if (best == nullptr) return std::unexpected(Explain(hosts, need));
  return best->name;
}

namespace {

constexpr Duration kPause = std::chrono::seconds(30);

}  // namespace

Task<> FullLabels::AwaitChance(Loop& loop, LabelName label) {
  auto full = since_.find(label);
  if (full == since_.end()) co_return;
  SteadyTime until = full->second + kPause;
  if (loop.SteadyNow() < until) co_await EndsBy(loop, until, "room on a host", growth_.Wait());
}

void FullLabels::RoomHasGrown() {
  since_.clear();
  growth_.NotifyAll();
}

}  // namespace nodepool::drivers::libvirt
