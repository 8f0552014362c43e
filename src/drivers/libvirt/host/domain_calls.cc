#include "drivers/libvirt/host/domain_calls.h"

#include <fmt/format.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>

#include "base/text.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/xml/host_xml.h"

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
