#include "drivers/libvirt/placement/site.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "drivers/libvirt/storage/boot_image.h"
#include "drivers/libvirt/storage/images.h"

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

Site::Site(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const LibvirtConfig> provider,
           const MakeHypervisor& make)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      tasks(environment.loop, logger),
      hosts(tasks, environment.random, *config, make, logger, *this),
      image_sizes(*config),
      arrivals(tasks, logger),
      key(config->key) {
  if (environment.observer == nullptr) return;
  for (const HostConfig& host : config->hosts) environment.observer->HostAdded(config->name, host.name);
}

void Site::HostChanged(Host&) {
  fetches.Begin();
  full_labels.RoomHasGrown();
  environment.framework.CapacityChanged();
}

void Site::ForeignChanged(Host&) {
  full_labels.RoomHasGrown();
  environment.framework.QuotaChanged();
}

void Site::MachineLost(Host&) { environment.framework.MachinesTaken(); }

void Site::CallEnded(Host& host, const char* call, Duration took, bool is_ok) {
  if (environment.observer == nullptr) return;
  environment.observer->HostCallEnded({config->name, host.name(), call, is_ok, took});
}

void Site::Forget(const MachineId& id) {
  ledger.Remove(id);
  full_labels.RoomHasGrown();
}

void Site::HostMeasured(Host& host) {
  if (environment.observer == nullptr) return;
  driver::HostUse use{config->name, host.name(), !host.fault()};
  for (const DomainInfo& domain : host.listed()) {
    use.instances += 1;
    use.cores += domain.vcpus;
    use.memory += domain.memory;
  }
  environment.observer->HostMeasured(use);
}

Task<> Site::Stop() {
  co_await tasks.Stop();
  co_await hosts.Stop();
  if (environment.observer == nullptr || std::exchange(is_stopped_, true)) co_return;
  for (const auto& host : hosts) environment.observer->HostRemoved(config->name, host->name());
}

namespace {

// What a host keeps for itself.
constexpr double kReservedMemory = 1024;  // MiB
constexpr double kReservedShare = 0.1;

double ReadNumber(const std::string& text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Everything on the host, and what this process is about to add to it.
Need UsedOn(const Ledger& ledger, const Host& host, const std::vector<DomainInfo>& domains) {
  Need used{.instances = 0};
  std::set<std::string> listed;
  for (const DomainInfo& domain : domains) {
    used.Add(NeedOf(domain));
    listed.insert(domain.uuid);
  }
  for (const auto& [uuid, entry] : ledger.entries()) {
    if (entry.host == host.name() && !listed.contains(uuid)) used.Add(entry.need);
  }
  return used;
}

// What machines of other hosts take of the host's storage, by their last lists.
double DiskOfSharers(const Hosts& hosts, const Ledger& ledger, const Host& host) {
  double disk = 0;
  for (const auto& other : hosts) {
    bool is_sharer = other.get() != &host && ShareStorage(*other, host);
    if (is_sharer) disk += UsedOn(ledger, *other, other->listed()).disk;
  }
  return disk;
}

// Why the host is not asked; empty: it is.
std::string WhyNot(const Host& host, const LibvirtPool& pool, const LibvirtLabel& label) {
  bool is_of_pool = pool.hosts.empty() || std::ranges::find(pool.hosts, host.name()) != pool.hosts.end();
  if (!is_of_pool) return "the pool does not use it";
  if (label.host && *label.host != host.name()) return "the label names another host";
  if (host.config().is_paused) return "it is paused";
  if (host.fault()) return host.fault()->message();
  return host.IsFull() ? "a machine there is paused, since the storage pool is full" : "";
}

Task<> ReadRoom(Host& host, HostRoom& room, std::vector<DomainInfo>& domains) {
  PoolSpace space = co_await host.Use().Space();
  domains = co_await host.Domains();
  room.limit = LimitOf(host.config(), host.size(), space.capacity);
  double free = static_cast<double>(space.available) / double(kGibibyte);
  if (free < host.config().min_free_disk) {
    room.unusable = fmt::format("its storage pool has {:.1f} GiB free, less than min-free-disk", free);
  }
}

// Where the cloud images are is known; uploads are asked for, and copied where they are not.
Task<> FindImage(const Hosts& hosts, const ImageSizes& sizes, const LibvirtLabel& label, std::string volume,
                 std::vector<HostRoom>& rooms) {
  for (HostRoom& room : rooms) {
    if (label.cloud_image) {
      room.has_image = sizes.IsOn(room.name, volume);
    } else {
      room.has_image = co_await HasImage(hosts.At(room.name), volume);
    }
  }
  bool is_somewhere = std::ranges::any_of(rooms, &HostRoom::has_image);
  for (HostRoom& room : rooms) room.can_get_image = label.diskimage && is_somewhere;
}

}  // namespace

Need NeedOf(const LibvirtConfig& config, const ImageSizes& sizes, const LibvirtLabel& label) {
  Need need{1, static_cast<double>(label.vcpus), static_cast<double>(label.memory), 0};
  if (label.disk) {
    need.disk = *label.disk;
    return need;
  }
  std::optional<std::string> volume = VolumeOf(config, label, std::nullopt);
  std::optional<std::uint64_t> size = volume ? sizes.Find(*volume) : std::nullopt;
  if (!size)
    throw Error(Verdict::kRetry, fmt::format("no host has shown volume {} yet", volume.value_or("")));
  need.disk = std::ceil(static_cast<double>(*size) / double(kGibibyte));
  return need;
}

Need NeedOf(const DomainInfo& domain) {
  return {1, static_cast<double>(domain.vcpus), domain.memory,
          ReadNumber(FindOrEmpty(domain.metadata, kDiskKey))};
}

driver::QuotaInformation ToQuota(const Need& need) {
  return driver::QuotaInformation::Amount(
      {{"instances", need.instances}, {"cores", need.cores}, {"ram", need.memory}, {"volume-gb", need.disk}});
}

Need LimitOf(const HostConfig& config, const HostSize& size, std::uint64_t capacity) {
  Need limit;
  limit.instances = config.instances ? *config.instances : driver::kUnlimited;
  limit.cores = config.cores.Of(size.cores);
  double reserve = std::max(kReservedMemory, size.memory * kReservedShare);
  limit.memory = config.memory ? config.memory->Of(size.memory) : std::max(size.memory - reserve, 0.0);
  limit.disk = config.disk.Of(static_cast<double>(capacity) / double(kGibibyte));
  return limit;
}

Task<std::vector<HostRoom>> ReadRooms(Site& site, const LibvirtPool& pool, const LibvirtLabel& label,
                                      std::optional<std::string> image_external_id) {
  std::optional<std::string> volume = VolumeOf(*site.config, label, image_external_id);
  std::vector<HostRoom> rooms;
  std::vector<std::vector<DomainInfo>> domains(site.hosts.size());
  for (const auto& host : site.hosts) {
    HostRoom& room = rooms.emplace_back();
    room.name = host->name();
    room.unusable = WhyNot(*host, pool, label);
    if (!room.unusable.empty()) continue;
    Outcome<> read = co_await Attempt(ReadRoom(*host, room, domains[rooms.size() - 1]));
    if (!read) room.unusable = read.error().message();
  }
  if (volume) co_await FindImage(site.hosts, site.image_sizes, label, *volume, rooms);
  // Last, and with nothing awaited after it: other creations have taken room meanwhile.
  for (std::size_t i = 0; i < rooms.size(); ++i)
    rooms[i].used = UsedOn(site.ledger, site.hosts[i], domains[i]);
  for (std::size_t i = 0; i < rooms.size(); ++i)
    rooms[i].used.disk += DiskOfSharers(site.hosts, site.ledger, site.hosts[i]);
  co_return rooms;
}

Task<Need> SumOfLimits(const Hosts& all) {
  std::vector<Host*> hosts = all.Usable();
  if (hosts.empty()) all[0].Use();
  Need sum{.instances = 0};
  std::vector<const Host*> counted;
  for (Host* host : hosts) {
    if (host->config().is_paused || host->fault()) continue;
    PoolSpace space = co_await host->Use().Space();
    Need limit = LimitOf(host->config(), host->size(), space.capacity);
    auto shares = [host](const Host* other) { return ShareStorage(*host, *other); };
    if (std::ranges::any_of(counted, shares)) limit.disk = 0;
    counted.push_back(host);
    sum.Add(limit);
  }
  co_return sum;
}

using driver::cloud::CreateParameters;

namespace {

using Chosen = std::expected<std::string, NoHost>;

// Where another node of the request is; none: there is none yet.
std::optional<std::string> HostOfRequest(const Ledger& ledger, const CreateParameters& parameters) {
  if (parameters.az) return parameters.az;
  if (parameters.request_id.str().empty()) return std::nullopt;
  for (const auto& [uuid, entry] : ledger.entries()) {
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
    whole.Add(NeedOf(*site.config, site.image_sizes, driver::cloud::As<LibvirtLabel>(*label->second)));
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
  SameHost same = SameHostFor(*site.config, driver::cloud::As<LibvirtLabel>(*parameters.label));
  if (same == SameHost::kNo) return ChooseHost(rooms, need, placement);
  std::optional<std::string> host = HostOfRequest(site.ledger, parameters);
  Chosen together = host ? ChooseHost(OnlyHost(rooms, *host), need, placement)
                         : ChooseHost(rooms, NeedOfRequest(site, parameters, need), placement);
  if (together || same == SameHost::kRequire) return together;
  return ChooseHost(rooms, need, placement);
}

}  // namespace

SameHost SameHostFor(const LibvirtConfig& config, const LibvirtLabel& label) {
  if (config.same_host) return *config.same_host;
  const MachineNetwork& network = label.network ? *label.network : config.hosts.front().network;
  return network.kind == MachineNetwork::Kind::kBridge ? SameHost::kNo : SameHost::kRequire;
}

Task<Host*> ChooseHostFor(Site& site, const CreateParameters& parameters, Need need) {
  const auto& pool = driver::cloud::As<LibvirtPool>(*parameters.pool);
  const auto& label = driver::cloud::As<LibvirtLabel>(*parameters.label);
  co_await site.full_labels.AwaitChance(site.environment.loop, label.name);
  std::vector<HostRoom> rooms = co_await ReadRooms(site, pool, label, parameters.image_external_id);
  Chosen chosen = Choose(site, rooms, parameters, need);
  if (chosen) co_return &site.hosts.At(*chosen);
  bool is_forever = chosen.error().is_forever;
  if (!is_forever) site.full_labels.Add(label.name, site.environment.loop.SteadyNow());
  throw Error(is_forever ? Verdict::kInvalid : Verdict::kQuota,
              fmt::format("no host {} label {} ({})", is_forever ? "is large enough for" : "has room for",
                          label.name, chosen.error().reasons));
}

}  // namespace nodepool::drivers::libvirt
