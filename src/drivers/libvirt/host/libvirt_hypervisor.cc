#include "drivers/libvirt/host/libvirt_hypervisor.h"

#include <fmt/format.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>

#include <atomic>
#include <utility>

#include "async/task.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/volume_calls.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt::calls {

namespace {

constexpr double kKibibytesInMebibyte = 1024;
constexpr int kAgentSeconds = 5;

bool OffersKvm(const Connection& connection) {
  Allocated<char> capabilities(
      virConnectGetDomainCapabilities(connection.get(), nullptr, nullptr, nullptr, "kvm", 0));
  return capabilities != nullptr;
}

std::string SharedStorageOf(const Connection& connection) {
  Allocated<char> xml(virStoragePoolGetXMLDesc(connection.pool(), 0));
  if (!xml) throw LastFault("reading the description of the storage pool");
  return SharedStorageIn(xml.get());
}

DomainHandle FindDomain(const Connection& connection, const std::string& uuid, const std::string& what) {
  DomainHandle domain(virDomainLookupByUUIDString(connection.get(), uuid.c_str()));
  if (!domain) throw LastFault(what);
  return domain;
}

std::string PathOf(const Connection& connection, const std::string& volume) {
  Allocated<char> path(virStorageVolGetPath(connection.FindVolume(volume).get()));
  if (!path) throw LastFault(fmt::format("finding the path of volume {}", volume));
  return path.get();
}

NetworkHandle FindNetwork(const Connection& connection, const std::string& name, const std::string& what) {
  NetworkHandle network(virNetworkLookupByName(connection.get(), name.c_str()));
  if (!network) throw LastFault(what);
  return network;
}

// A domain that an operator has defined by hand under our UUID stays otherwise.
void Undefine(virDomainPtr domain, const std::string& what) {
  if (virDomainIsPersistent(domain) != 1) return;
  unsigned flags = VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | VIR_DOMAIN_UNDEFINE_NVRAM;
  if (virDomainUndefineFlags(domain, flags) < 0 && LastCode() != VIR_ERR_NO_DOMAIN) throw LastFault(what);
}

}  // namespace

HostSize ReadSize(const Connection& connection) {
  virNodeInfo info{};
  if (virNodeGetInfo(connection.get(), &info) < 0) throw LastFault("reading the host's size");
  return {static_cast<int>(info.cpus), static_cast<double>(info.memory) / kKibibytesInMebibyte,
          OffersKvm(connection), SharedStorageOf(connection), info.model};
}

std::vector<std::string> ListDomains(const Connection& connection) {
  virDomainPtr* list = nullptr;
  int count = virConnectListAllDomains(connection.get(), &list, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
  if (count < 0) throw LastFault("listing domains");
  Allocated<virDomainPtr> freed(list);
  std::vector<DomainHandle> handles(list, list + count);
  std::vector<std::string> domains;
  for (const DomainHandle& domain : handles) {
    Allocated<char> xml(virDomainGetXMLDesc(domain.get(), 0));
    // It has ended meanwhile.
    if (xml) domains.emplace_back(xml.get());
  }
  return domains;
}

void StartDomain(const Connection& connection, const std::string& xml) {
  DomainHandle domain(virDomainCreateXML(connection.get(), xml.c_str(), 0));
  if (!domain) throw LastFault("starting the machine");
}

void DestroyDomain(const Connection& connection, const std::string& uuid) {
  std::string what = fmt::format("ending domain {}", uuid);
  DomainHandle domain(virDomainLookupByUUIDString(connection.get(), uuid.c_str()));
  if (!domain) {
    if (LastCode() == VIR_ERR_NO_DOMAIN) return;
    throw LastFault(what);
  }
  if (virDomainDestroy(domain.get()) < 0) {
    int code = LastCode();
    bool is_ended = code == VIR_ERR_NO_DOMAIN || code == VIR_ERR_OPERATION_INVALID;
    if (!is_ended) throw LastFault(what);
  }
  Undefine(domain.get(), what);
}

void ResumeDomain(const Connection& connection, const std::string& uuid) {
  std::string what = fmt::format("resuming domain {}", uuid);
  DomainHandle domain = FindDomain(connection, uuid, what);
  if (virDomainResume(domain.get()) < 0) throw LastFault(what);
}

void SaveDomain(const Connection& connection, const std::string& uuid, const std::string& volume) {
  std::string what = fmt::format("saving the memory of domain {}", uuid);
  DomainHandle domain = FindDomain(connection, uuid, what);
  if (virDomainSave(domain.get(), PathOf(connection, volume).c_str()) < 0) throw LastFault(what);
}

void RestoreDomain(const Connection& connection, const std::string& volume) {
  std::string path = PathOf(connection, volume);
  if (virDomainRestore(connection.get(), path.c_str()) < 0) {
    throw LastFault(fmt::format("restoring a machine from {}", path));
  }
}

std::string AskAgent(const Connection& connection, const std::string& uuid, const std::string& command) {
  std::string what = fmt::format("asking the agent of domain {}", uuid);
  DomainHandle domain = FindDomain(connection, uuid, what);
  Allocated<char> answer(virDomainQemuAgentCommand(domain.get(), command.c_str(), kAgentSeconds, 0));
  if (!answer) throw LastFault(what);
  return answer.get();
}

std::vector<KnownAddress> ReadLeases(const Connection& connection, const std::string& network) {
  std::string what = fmt::format("reading the leases of network {}", network);
  NetworkHandle found = FindNetwork(connection, network, what);
  virNetworkDHCPLeasePtr* list = nullptr;
  int count = virNetworkGetDHCPLeases(found.get(), nullptr, &list, 0);
  if (count < 0) throw LastFault(what);
  Allocated<virNetworkDHCPLeasePtr> freed(list);
  std::vector<LeaseHandle> handles(list, list + count);
  std::vector<KnownAddress> leases;
  for (const LeaseHandle& lease : handles) {
    if (lease->mac == nullptr || lease->ipaddr == nullptr) continue;
    leases.push_back({Lower(lease->mac), lease->ipaddr, lease->type == VIR_IP_ADDR_TYPE_IPV6});
  }
  return leases;
}

std::uint64_t ReadLeaseRange(const Connection& connection, const std::string& network) {
  std::string what = fmt::format("reading the description of network {}", network);
  NetworkHandle found = FindNetwork(connection, network, what);
  Allocated<char> xml(virNetworkGetXMLDesc(found.get(), 0));
  if (!xml) throw LastFault(what);
  return LeaseRangeIn(xml.get());
}

std::vector<KnownAddress> ReadAddresses(const Connection& connection, const std::string& uuid,
                                        AddressSource source) {
  std::string what = fmt::format("asking for the addresses of domain {}", uuid);
  DomainHandle domain = FindDomain(connection, uuid, what);
  bool is_agent = source == AddressSource::kAgent;
  // An agent that does not answer would hold up the host's thread.
  if (is_agent) virDomainAgentSetResponseTimeout(domain.get(), kAgentSeconds, 0);
  unsigned from =
      is_agent ? VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT : VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_ARP;
  virDomainInterfacePtr* list = nullptr;
  int count = virDomainInterfaceAddresses(domain.get(), &list, from, 0);
  if (count < 0) throw LastFault(what);
  Allocated<virDomainInterfacePtr> freed(list);
  std::vector<InterfaceHandle> handles(list, list + count);
  std::vector<KnownAddress> addresses;
  for (const InterfaceHandle& interface : handles) {
    if (interface->hwaddr == nullptr) continue;
    for (unsigned i = 0; i < interface->naddrs; ++i) {
      const virDomainIPAddress& address = interface->addrs[i];
      addresses.push_back({Lower(interface->hwaddr), address.addr, address.type == VIR_IP_ADDR_TYPE_IPV6});
    }
  }
  return addresses;
}

}  // namespace nodepool::drivers::libvirt::calls

namespace nodepool::drivers::libvirt {

namespace {

// libvirtd works on five calls of a connection at a time (max_client_requests).
constexpr std::size_t kThreads = 4;
constexpr std::size_t kBulkThreads = 2;
constexpr Duration kConnectLimit = std::chrono::seconds(20);
constexpr Duration kStopLimit = std::chrono::seconds(10);
// A busy host reads the memory of a machine slowly.
constexpr int kTimeoutsOfAStart = 4;

// On a thread. For bytes beside which the calls of the usual connection would wait.
std::shared_ptr<Connection> OpenForOnce(const HostConfig& host) {
  auto drop = [](std::string) {};
  return Connection::Open(host, {drop, drop, drop, [](std::string, std::string) {}});
}

// On a thread. That something is not there says nothing of the pool.
template <class Work>
auto WithPoolCheck(const Connection& connection, const Work& work) {
  try {
    return work(connection);
  } catch (const Error& error) {
    if (error.verdict() != Verdict::kNotFound) connection.CheckPool();
    throw;
  }
}

}  // namespace

LibvirtHypervisor::LibvirtHypervisor(Loop& loop, HostConfig host, Duration call_timeout,
                                     HypervisorListener& listener)
    : Hypervisor(listener),
      loop_(loop),
      host_(std::move(host)),
      call_timeout_(call_timeout),
      port_(std::make_shared<LoopPort>(loop)),
      threads_(loop, kThreads),
      bulk_threads_(loop, kBulkThreads) {}

LibvirtHypervisor::~LibvirtHypervisor() {
  port_->Close();
  CloseConnection();
}

Task<> LibvirtHypervisor::Connect() {
  CloseConnection();
  int generation = ++generation_;
  Connection::Events events;
  events.lost = [this, generation, port = port_](std::string why) {
    port->Post([this, generation, why] { Lose(generation, why); });
  };
  events.domain_started = [this, port = port_](std::string uuid) {
    port->Post([this, uuid] { listener_.DomainStarted(uuid); });
  };
  events.domain_ended = [this, port = port_](std::string uuid) {
    port->Post([this, uuid] { listener_.DomainEnded(uuid); });
  };
  events.domain_paused = [this, port = port_](std::string uuid, std::string reason) {
    port->Post([this, uuid, reason] { listener_.DomainPaused(uuid, reason); });
  };
  auto open = [host = host_, events] { return Connection::Open(host, events); };
  Task<std::shared_ptr<Connection>> opening = threads_.Run("connecting", kConnectLimit, open);
  std::shared_ptr<Connection> connection = co_await Measured("connect", std::move(opening));
  if (generation != generation_) throw Error(Verdict::kRetry, "the connection was lost at once");
  connection_ = std::move(connection);
}

void LibvirtHypervisor::Lose(int generation, std::string why) {
  if (generation != generation_) return;
  ++generation_;
  CloseConnection();
  listener_.ConnectionLost(std::move(why));
}

void LibvirtHypervisor::CloseConnection() {
  if (!connection_) return;
  threads_.Post([connection = std::exchange(connection_, nullptr)] {});
}

template <class Result>
Task<Result> LibvirtHypervisor::Measured(const char* name, Task<Result> call) {
  SteadyTime begun = loop_.SteadyNow();
  Outcome<Result> outcome = co_await Attempt(std::move(call));
  if (!FailedWith(outcome, Verdict::kCancelled)) {
    bool is_answered = outcome.has_value() || FailedWith(outcome, Verdict::kNotFound);
    listener_.CallEnded(name, loop_.SteadyNow() - begun, is_answered);
  }
  if (!outcome) outcome.error().Rethrow();
  if constexpr (!std::is_void_v<Result>) co_return std::move(*outcome);
}

template <class Work, class Result>
Task<Result> LibvirtHypervisor::Call(const char* name, std::string what, Work work, int timeouts) {
  return Measured(name, CallOnce(std::move(what), std::move(work), timeouts * call_timeout_));
}

template <class Work, class Result>
Task<Result> LibvirtHypervisor::CallOnce(std::string what, Work work, Duration limit) {
  if (!connection_) throw Error(Verdict::kRetry, "the host is not connected");
  int generation = generation_;
  std::shared_ptr<Connection> connection = connection_;
  auto run = [connection, work = std::move(work)] { return WithPoolCheck(*connection, work); };
  Task<Result> call = threads_.Run(what, limit, std::move(run));
  Outcome<Result> outcome = co_await Attempt(std::move(call));
  if (!outcome) {
    // What libvirt says of a call whose connection broke has no code of its own. The opening of a new one
    // starts a storage pool that is not active.
    std::optional<std::string> fault = connection->Fault();
    if (fault) Lose(generation, *fault);
    if (generation != generation_)
      throw Error(Verdict::kRetry, fmt::format("{}: {}", what, fault.value_or("the connection broke")));
    outcome.error().Rethrow();
  }
  if constexpr (!std::is_void_v<Result>) co_return std::move(*outcome);
}

Task<HostSize> LibvirtHypervisor::Size() { return Call("size", "reading the host's size", &calls::ReadSize); }

Task<PoolSpace> LibvirtHypervisor::Space() {
  return Call("space", "reading the storage pool's size", &calls::ReadSpace);
}

Task<std::vector<std::string>> LibvirtHypervisor::Domains() {
  return Call("domains", "listing domains", &calls::ListDomains);
}

Task<> LibvirtHypervisor::StartDomain(std::string xml) {
  auto start = [xml = std::move(xml)](const Connection& host) { calls::StartDomain(host, xml); };
  return Call("start", "starting a machine", std::move(start), kTimeoutsOfAStart);
}

Task<> LibvirtHypervisor::DestroyDomain(std::string uuid) {
  std::string what = fmt::format("ending domain {}", uuid);
  auto destroy = [uuid = std::move(uuid)](const Connection& host) { calls::DestroyDomain(host, uuid); };
  return Call("destroy", std::move(what), std::move(destroy));
}

Task<> LibvirtHypervisor::ResumeDomain(std::string uuid) {
  std::string what = fmt::format("resuming domain {}", uuid);
  auto resume = [uuid = std::move(uuid)](const Connection& host) { calls::ResumeDomain(host, uuid); };
  return Call("resume", std::move(what), std::move(resume));
}

Task<> LibvirtHypervisor::SaveDomain(std::string uuid, std::string volume, Duration limit) {
  std::string what = fmt::format("saving the memory of domain {}", uuid);
  auto save = [host = host_, uuid = std::move(uuid), volume = std::move(volume)] {
    std::shared_ptr<Connection> connection = OpenForOnce(host);
    calls::SaveDomain(*connection, uuid, volume);
  };
  co_await Measured("save", bulk_threads_.Run(std::move(what), limit, std::move(save)));
}

Task<> LibvirtHypervisor::RestoreDomain(std::string volume) {
  std::string what = fmt::format("restoring a machine from volume {}", volume);
  auto restore = [volume = std::move(volume)](const Connection& host) { calls::RestoreDomain(host, volume); };
  return Call("restore", std::move(what), std::move(restore), kTimeoutsOfAStart);
}

Task<std::string> LibvirtHypervisor::AskAgent(std::string uuid, std::string command) {
  std::string what = fmt::format("asking the agent of domain {}", uuid);
  auto ask = [uuid = std::move(uuid), command = std::move(command)](const Connection& host) {
    return calls::AskAgent(host, uuid, command);
  };
  return Call("agent", std::move(what), std::move(ask));
}

Task<std::vector<VolumeInfo>> LibvirtHypervisor::Volumes() {
  return Call("volumes", "listing volumes", &calls::ListVolumes);
}

Task<VolumeInfo> LibvirtHypervisor::Volume(std::string name) {
  std::string what = fmt::format("reading volume {}", name);
  auto read = [name = std::move(name)](const Connection& host) { return calls::ReadVolume(host, name); };
  return Call("volume", std::move(what), std::move(read));
}

Task<std::string> LibvirtHypervisor::CreateVolume(NewVolume volume) {
  std::string what = fmt::format("making volume {}", volume.name);
  auto create = [volume = std::move(volume)](const Connection& host) {
    return calls::CreateVolume(host, volume);
  };
  return Call("create_volume", std::move(what), std::move(create));
}

Task<> LibvirtHypervisor::WriteVolume(std::string name, std::string bytes) {
  std::string what = fmt::format("writing volume {}", name);
  auto write = [name = std::move(name), bytes = std::move(bytes)](const Connection& host) {
    calls::WriteVolume(host, name, bytes);
  };
  return Call("write_volume", std::move(what), std::move(write));
}

Task<std::string> LibvirtHypervisor::UploadVolume(std::string name, std::string path, Duration limit) {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  ScopeExit end([stop] { *stop = true; });
  std::string what = fmt::format("uploading {} to volume {}", path, name);
  auto upload = [host = host_, name = std::move(name), path = std::move(path), stop] {
    std::shared_ptr<Connection> connection = OpenForOnce(host);
    return calls::UploadFile(*connection, name, path, stop);
  };
  co_return co_await Measured("upload", bulk_threads_.Run(std::move(what), limit, std::move(upload)));
}

Task<std::string> LibvirtHypervisor::ReadVolumeStart(std::string name, std::uint64_t most) {
  std::string what = fmt::format("reading volume {}", name);
  auto read = [name = std::move(name), most](const Connection& host) {
    return calls::ReadVolumeStart(host, name, most);
  };
  return Call("read_volume", std::move(what), std::move(read));
}

Task<> LibvirtHypervisor::CopyVolume(HostConfig source, std::string name, Duration limit) {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  ScopeExit end([stop] { *stop = true; });
  std::string what = fmt::format("copying volume {} from host {}", name, source.name);
  auto copy = [from = std::move(source), to = host_, name = std::move(name), stop] {
    std::shared_ptr<Connection> source_host = OpenForOnce(from), target_host = OpenForOnce(to);
    calls::CopyVolume(*source_host, *target_host, name, stop);
  };
  co_await Measured("copy", bulk_threads_.Run(std::move(what), limit, std::move(copy)));
}

Task<> LibvirtHypervisor::FetchVolume(std::string name, ImageOrigin origin, Duration limit) {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  ScopeExit end([stop] { *stop = true; });
  std::string what = fmt::format("{} into volume {}", calls::Fetching(origin), name);
  auto fetch = [host = host_, name = std::move(name), origin = std::move(origin), stop] {
    std::shared_ptr<Connection> connection = OpenForOnce(host);
    calls::FetchVolume(*connection, name, origin, std::uint64_t(host.min_free_disk) * kGibibyte, stop);
  };
  co_await Measured("fetch", bulk_threads_.Run(std::move(what), limit, std::move(fetch)));
}

Task<std::string> LibvirtHypervisor::ReadVolumeEnd(std::string name, std::uint64_t most) {
  std::string what = fmt::format("reading volume {}", name);
  auto read = [name = std::move(name), most](const Connection& host) {
    return calls::ReadVolumeEnd(host, name, most);
  };
  return Call("read_volume", std::move(what), std::move(read));
}

Task<> LibvirtHypervisor::DeleteVolume(std::string name) {
  std::string what = fmt::format("deleting volume {}", name);
  auto erase = [name = std::move(name)](const Connection& host) { calls::DeleteVolume(host, name); };
  return Call("delete_volume", std::move(what), std::move(erase));
}

Task<std::vector<KnownAddress>> LibvirtHypervisor::Leases(std::string network) {
  std::string what = fmt::format("reading the leases of network {}", network);
  auto read = [network = std::move(network)](const Connection& host) {
    return calls::ReadLeases(host, network);
  };
  return Call("leases", std::move(what), std::move(read));
}

Task<std::uint64_t> LibvirtHypervisor::LeaseRange(std::string network) {
  std::string what = fmt::format("reading the description of network {}", network);
  auto read = [network = std::move(network)](const Connection& host) {
    return calls::ReadLeaseRange(host, network);
  };
  return Call("lease_range", std::move(what), std::move(read));
}

Task<std::vector<KnownAddress>> LibvirtHypervisor::Addresses(std::string uuid, AddressSource source) {
  std::string what = fmt::format("asking for the addresses of domain {}", uuid);
  auto read = [uuid = std::move(uuid), source](const Connection& host) {
    return calls::ReadAddresses(host, uuid, source);
  };
  return Call("addresses", std::move(what), std::move(read));
}

Task<> LibvirtHypervisor::Stop() {
  ++generation_;
  CloseConnection();
  SteadyTime deadline = loop_.SteadyNow() + kStopLimit;
  co_await threads_.Drain(deadline);
  co_await bulk_threads_.Drain(deadline);
}

}  // namespace nodepool::drivers::libvirt
