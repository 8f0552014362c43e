#include "drivers/libvirt/host/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <set>
#include <vector>

#include "async/backoff.h"
#include "async/task.h"
#include "base/scope_exit.h"
#include "driver/cloud/adapter.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr Duration kShortPause = std::chrono::milliseconds(250);
constexpr Duration kLongPause = std::chrono::seconds(1);
// Most machines have their address by then.
constexpr Duration kHaste = std::chrono::seconds(30);

bool IsGlobal(const std::string& text) {
  boost::system::error_code fault;
  auto address = boost::asio::ip::make_address(text, fault);
  if (fault || address.is_loopback() || address.is_unspecified()) return false;
  if (address.is_v6()) return !address.to_v6().is_link_local();
  return address.to_v4().to_uint() >> 16 != 0xa9fe;  // 169.254.0.0/16
}

}  // namespace

Addresses::Addresses(TaskGroup& tasks, Random& random, log::Logger logger, Host& host)
    : tasks_(tasks), random_(random), logger_(std::move(logger)), host_(host) {}

Task<std::string> Addresses::Wait(AddressSearch search, std::function<void()> check) {
  Searched& searched = Of(search.network);
  searched.searches[search.uuid] = search;
  searched.last_begun = tasks_.loop().SteadyNow();
  ScopeExit leave([&] { searched.searches.erase(search.uuid); });
  auto has_address = [&search, &check](const std::vector<KnownAddress>& addresses) {
    check();
    return !AddressIn(addresses, search.mac).empty();
  };
  auto listing = co_await searched.list->Until(has_address);
  std::string address = AddressIn(*listing.items, search.mac);
  Claim(search.network, address, search.uuid);
  co_return address;
}

void Addresses::Claim(const MachineNetwork& network, const std::string& address, const std::string& uuid) {
  std::string& owner = Of(network).owners[address];
  if (owner != uuid && host_.IsRunning(owner)) {
    throw driver::cloud::LaunchError(
        driver::cloud::LaunchError::Kind::kNetwork,
        fmt::format(
            "the machine on host {} was given the address {}, which machine {} has: where an image has "
            "a fixed /etc/machine-id, a DHCP server takes all its machines for one; empty that file",
            host_.name(), address, owner));
  }
  owner = uuid;
}

Addresses::Searched& Addresses::Of(const MachineNetwork& network) {
  bool is_bridge = network.kind == MachineNetwork::Kind::kBridge;
  Searched& searched = (is_bridge ? bridges_ : networks_)[network.name];
  if (searched.list) return searched;
  List::Read read = [this, &searched, is_bridge, name = network.name] {
    return is_bridge ? ReadMachines(searched) : ReadLeases(searched, name);
  };
  searched.list = std::make_unique<List>(tasks_, random_, logger_, "addresses of network " + network.name,
                                         std::move(read), is_bridge ? kLongPause : kShortPause);
  return searched;
}

Task<std::vector<KnownAddress>> Addresses::ReadLeases(Searched& searched, std::string network) {
  bool is_urgent = tasks_.loop().SteadyNow() < searched.last_begun + kHaste;
  if (!is_urgent) co_await tasks_.loop().SleepFor(kLongPause - kShortPause);
  auto read = [&network](Hypervisor& hypervisor) { return hypervisor.Leases(network); };
  co_return co_await host_.AcrossLosses(read);
}

Task<std::vector<KnownAddress>> Addresses::ReadMachines(Searched& searched) {
  std::vector<std::string> uuids;
  for (const auto& [uuid, search] : searched.searches) uuids.push_back(uuid);
  std::vector<KnownAddress> all;
  for (const std::string& uuid : uuids) {
    std::vector<KnownAddress> addresses = co_await ReadMachine(uuid);
    all.insert(all.end(), addresses.begin(), addresses.end());
  }
  co_return all;
}

// What does not know the machine says so with an error, of which nothing follows.
Task<std::vector<KnownAddress>> Addresses::ReadMachine(std::string uuid) {
  for (AddressSource source : {AddressSource::kAgent, AddressSource::kArp}) {
    auto ask = [&uuid, source](Hypervisor& hypervisor) { return hypervisor.Addresses(uuid, source); };
    Outcome<std::vector<KnownAddress>> answer = co_await Attempt(host_.AcrossLosses(ask));
    if (answer && !answer->empty()) co_return std::move(*answer);
  }
  co_return std::vector<KnownAddress>();
}

std::string AddressIn(const std::vector<KnownAddress>& addresses, const std::string& mac) {
  std::string ipv6;
  for (const KnownAddress& known : addresses) {
    if (known.mac != mac || !IsGlobal(known.address)) continue;
    if (!known.is_ipv6) return known.address;
    ipv6 = known.address;
  }
  return ipv6;
}

namespace {

constexpr int kFirst = 22000;
constexpr int kLast = 22999;
constexpr Duration kPortPause = std::chrono::minutes(10);

}  // namespace

std::optional<int> FreePort(const std::set<int>& taken, Random& random) {
  std::vector<int> free;
  for (int port = kFirst; port <= kLast; ++port) {
    if (!taken.contains(port)) free.push_back(port);
  }
  if (free.empty()) return std::nullopt;
  return free[random.Below(free.size())];
}

void RefusedPorts::Add(int port, SteadyTime now) { until_[port] = now + kPortPause; }

std::set<int> RefusedPorts::At(SteadyTime now) {
  std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  std::set<int> ports;
  for (const auto& [port, until] : until_) ports.insert(port);
  return ports;
}

bool IsPortTaken(const Error& error) {
  return error.message().find("Could not set up host forwarding rule") != std::string::npos;
}

// QEMU takes no names.
std::string BindAddress(const std::string& address) {
  boost::system::error_code fault;
  boost::asio::ip::make_address_v4(address, fault);
  return fault ? "" : address;
}

namespace {

// Beyond min-free-disk: a paused machine would stop again at once otherwise.
constexpr std::uint64_t kRoomToContinue = 64 << 20;
constexpr Duration kRecent = std::chrono::seconds(5);
constexpr Backoff::Settings kPauses{std::chrono::seconds(1), std::chrono::seconds(60)};

}  // namespace

Host::Host(TaskGroup& tasks, Random& random, HostConfig config, const MakeHypervisor& make,
           log::Logger logger, HostListener& listener)
    : tasks_(tasks),
      random_(random),
      config_(std::move(config)),
      hypervisor_(make(config_, *this)),
      logger_(std::move(logger)),
      listener_(listener),
      work_(tasks),
      addresses_(tasks, random, logger_, *this) {}

void Host::Start() {
  if (std::exchange(is_started_, true)) return;
  tasks_.Spawn("connection to host " + name(), KeepConnected());
}

Task<> Host::Reached() {
  while (fault_ && fault_->verdict() == Verdict::kRetry) co_await changed_fault_.Wait();
  // What an operator has to mend says nothing of a machine: its launch waits, or another host serves it.
  if (fault_)
    throw Error(Verdict::kQuota, fmt::format("host {} cannot be used: {}", name(), fault_->message()));
}

Task<> Host::Tried() { return tried_.Wait(); }

bool Host::uses_kvm() const {
  return config_.accelerator == Accelerator::kKvm ||
         (config_.accelerator == Accelerator::kAuto && size_.offers_kvm);
}

// Capabilities show only that the device is there.
void Host::NoteFailedBoot(const std::string& console) {
  bool has_chosen_kvm = config_.accelerator == Accelerator::kAuto && uses_kvm();
  bool has_kernel = console.find("Linux version") != std::string::npos;
  if (!has_chosen_kvm || has_kernel || std::exchange(is_kvm_suspected_, true)) return;
  logger_.Warning(
      "Host {} offers KVM, but no kernel has written to the console of a machine there; if its images have a "
      "serial "
      "console (console=ttyS0), its KVM cannot run them: set accelerator to tcg",
      name());
}

Hypervisor& Host::Use() {
  if (fault_) throw fault_->In("host " + name());
  return *hypervisor_;
}

Task<std::vector<DomainInfo>> Host::Domains() {
  if (fault_) co_return domains_;
  co_return co_await ReadDomains();
}

Task<std::vector<DomainInfo>> Host::RecentDomains() {
  bool is_recent = listed_at_ && tasks_.loop().SteadyNow() - *listed_at_ < kRecent;
  if (is_recent) co_return domains_;
  co_return co_await Domains();
}

Task<std::vector<DomainInfo>> Host::ReadDomains() {
  std::vector<std::string> list = co_await hypervisor_->Domains();
  std::vector<DomainInfo> domains;
  for (const std::string& xml : list) domains.push_back(ParseDomain(xml));
  domains_ = domains;
  listed_at_ = tasks_.loop().SteadyNow();
  listener_.HostMeasured(*this);
  co_return domains;
}

Task<> Host::Stop() { return hypervisor_->Stop(); }

Task<> Host::KeepConnected() {
  Backoff pauses(kPauses, random_);
  while (true) {
    lost_.Reset();
    Outcome<> opened = co_await Attempt(Open());
    Report(opened ? std::nullopt : std::optional(Error(opened.error().verdict(), opened.error().message())));
    tried_.Set();
    if (opened) {
      pauses.Reset();
      co_await lost_.Wait();
    }
    co_await tasks_.loop().SleepFor(pauses.Next());
  }
}

Task<> Host::Open() {
  co_await hypervisor_->Connect();
  size_ = co_await hypervisor_->Size();
  co_await ReadDomains();
  NoteWhatEnded();
  if (config_.accelerator == Accelerator::kKvm && !size_.offers_kvm) {
    throw Error(Verdict::kInvalid, "it offers no KVM; set accelerator to tcg, or enable KVM there");
  }
}

// Nothing announces what happened while the connection was down.
void Host::NoteWhatEnded() {
  std::set<std::string> running;
  for (const DomainInfo& domain : domains_) running.insert(domain.uuid);
  for (auto& [uuid, has_ended] : has_ended_) has_ended = has_ended || !running.contains(uuid);
}

void Host::ConnectionLost(std::string why) {
  ++losses_;
  Report(Error(Verdict::kRetry, std::move(why)));
  lost_.Set();
}

void Host::DomainStarted(std::string uuid) {
  if (!IsOurs(uuid)) listener_.ForeignChanged(*this);
}

void Host::DomainEnded(std::string uuid) {
  bool is_ours = IsOurs(uuid);
  if (!is_ours) listener_.ForeignChanged(*this);
  auto machine = has_ended_.find(uuid);
  if (machine != has_ended_.end()) machine->second = true;
  bool was_full = IsFull();
  paused_.Remove(uuid);
  if (was_full && !IsFull()) listener_.HostChanged(*this);
  if (!is_ours || expected_ends_.contains(uuid)) return;
  listed_at_.reset();  // the list shows it
  listener_.MachineLost(*this);
}

void Host::DomainPaused(std::string uuid, std::string reason) {
  if (!IsOurs(uuid)) return;
  logger_.Warning("Machine {} on host {} is paused, since its disk could not be written: {}", NameOf(uuid),
                  name(),
                  reason == "enospc" ? "the storage pool is full; nothing new is made there, and the machine "
                                       "continues when the pool has min-free-disk again"
                                     : "I/O error " + reason);
  paused_.Add(uuid, std::move(reason));
}

void Host::CallEnded(const char* call, Duration took, bool is_ok) {
  listener_.CallEnded(*this, call, took, is_ok);
}

const DomainInfo* Host::FindListed(const std::string& uuid) const {
  auto found = std::ranges::find(domains_, uuid, &DomainInfo::uuid);
  return found == domains_.end() ? nullptr : &*found;
}

bool Host::IsOurs(const std::string& uuid) const {
  if (has_ended_.contains(uuid)) return true;
  const DomainInfo* listed = FindListed(uuid);
  return listed != nullptr && !listed->metadata.empty();
}

std::string Host::NameOf(const std::string& uuid) const {
  const DomainInfo* listed = FindListed(uuid);
  return listed == nullptr ? uuid : listed->name;
}

Task<> Host::ResumePaused() {
  if (!IsFull()) co_return;
  PoolSpace space = co_await Use().Space();
  std::uint64_t enough = std::uint64_t(config_.min_free_disk) * kGibibyte + kRoomToContinue;
  if (space.available < enough) co_return;
  for (const std::string& uuid : paused_.LackingRoom()) {
    Outcome<> resumed = co_await Attempt(Use().ResumeDomain(uuid));
    if (FailedWith(resumed, Verdict::kRetry)) co_return;
    if (resumed) {
      logger_.Info("Machine {} on host {} continues: the storage pool has room again", NameOf(uuid), name());
    } else {
      logger_.Warning("Machine {} on host {} cannot continue: {}", NameOf(uuid), name(),
                      resumed.error().message());
    }
    paused_.Remove(uuid);
  }
  listener_.HostChanged(*this);
}

// Once for each cause.
void Host::Report(std::optional<Error> fault) {
  bool is_same = fault_.has_value() == fault.has_value() && (!fault || fault_->message() == fault->message());
  fault_ = std::move(fault);
  if (is_same) return;
  if (fault_) {
    logger_.Warning("Host {} cannot be used, and is tried again: {}", name(), fault_->message());
  } else {
    logger_.Info("Host {} is connected: {} cores, {:.0f} MiB of memory, machines run {} KVM", name(),
                 size_.cores, size_.memory, uses_kvm() ? "with" : "without");
  }
  changed_fault_.NotifyAll();
  listener_.HostMeasured(*this);
  listener_.HostChanged(*this);
}

Hosts::Hosts(TaskGroup& tasks, Random& random, const LibvirtConfig& config, const MakeHypervisor& make,
             const log::Logger& logger, HostListener& listener)
    : provider_(config.name.str()) {
  for (const HostConfig& host : config.hosts) {
    hosts_.push_back(std::make_unique<Host>(tasks, random, host, make, logger, listener));
  }
}

Task<> Hosts::Connected() {
  for (const auto& host : hosts_) host->Start();
  for (const auto& host : hosts_) co_await host->Tried();
}

Host& Hosts::At(const std::string& name) const {
  auto found = std::ranges::find_if(hosts_, [&](const auto& host) { return host->name() == name; });
  if (found != hosts_.end()) return **found;
  throw Error(Verdict::kFail,
              fmt::format("provider {} no longer has the host {}; add it again to its section, or "
                          "remove what is left there by hand",
                          provider_, name));
}

std::vector<Host*> Hosts::Usable() const {
  std::vector<Host*> usable;
  for (const auto& host : hosts_) {
    if (!host->fault()) usable.push_back(host.get());
  }
  return usable;
}

Task<> Hosts::Stop() {
  for (const auto& host : hosts_) co_await host->Stop();
}

}  // namespace nodepool::drivers::libvirt
