#pragma once

#include <string>
#include <vector>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/hypervisor.h"

// Calls for the host, its domains and networks; they block (connection.h). Errors are libvirt's, by FaultOf.
namespace nodepool::drivers::libvirt::calls {

HostSize ReadSize(const Connection& connection);
// The XML of active domains.
std::vector<std::string> ListDomains(const Connection& connection);
void StartDomain(const Connection& connection, const std::string& xml);
void DestroyDomain(const Connection& connection, const std::string& uuid);
void ResumeDomain(const Connection& connection, const std::string& uuid);
void SaveDomain(const Connection& connection, const std::string& uuid, const std::string& volume);
void RestoreDomain(const Connection& connection, const std::string& volume);
std::string AskAgent(const Connection& connection, const std::string& uuid, const std::string& command);
std::vector<KnownAddress> ReadLeases(const Connection& connection, const std::string& network);
std::uint64_t ReadLeaseRange(const Connection& connection, const std::string& network);
std::vector<KnownAddress> ReadAddresses(const Connection& connection, const std::string& uuid,
                                        AddressSource source);

}  // namespace nodepool::drivers::libvirt::calls
