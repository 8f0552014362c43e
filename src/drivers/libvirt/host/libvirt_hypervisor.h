#pragma once

#include <memory>
#include <string>
#include <vector>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt::calls {

// Calls for the host, its domains and networks; they block (connection.h). Errors are libvirt's, by FaultOf.

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

namespace nodepool::drivers::libvirt {

// A host by libvirt's C API. Each call runs on one of the host's threads.
class LibvirtHypervisor : public Hypervisor {
 public:
  LibvirtHypervisor(Loop& loop, HostConfig host, Duration call_timeout, HypervisorListener& listener);
  ~LibvirtHypervisor() override;

  Task<> Connect() override;
  Task<HostSize> Size() override;
  Task<PoolSpace> Space() override;
  Task<std::vector<std::string>> Domains() override;
  Task<> StartDomain(std::string xml) override;
  Task<> DestroyDomain(std::string uuid) override;
  Task<> ResumeDomain(std::string uuid) override;
  Task<> SaveDomain(std::string uuid, std::string volume, Duration limit) override;
  Task<> RestoreDomain(std::string volume) override;
  Task<std::string> AskAgent(std::string uuid, std::string command) override;
  Task<std::vector<VolumeInfo>> Volumes() override;
  Task<VolumeInfo> Volume(std::string name) override;
  Task<std::string> CreateVolume(NewVolume volume) override;
  Task<> WriteVolume(std::string name, std::string bytes) override;
  Task<std::string> UploadVolume(std::string name, std::string path, Duration limit) override;
  Task<std::string> ReadVolumeStart(std::string name, std::uint64_t most) override;
  Task<> CopyVolume(HostConfig source, std::string name, Duration limit) override;
  Task<> FetchVolume(std::string name, ImageOrigin origin, Duration limit) override;
  Task<std::string> ReadVolumeEnd(std::string name, std::uint64_t most) override;
  Task<> DeleteVolume(std::string name) override;
  Task<std::vector<KnownAddress>> Leases(std::string network) override;
  Task<std::uint64_t> LeaseRange(std::string network) override;
  Task<std::vector<KnownAddress>> Addresses(std::string uuid, AddressSource source) override;
  Task<> Stop() override;

 private:
  // Runs work(connection) on a thread. `name` is the word for the call in metrics, `what` that in messages;
  // `timeouts`: how many call-timeouts it may take.
  template <class Work, class Result = std::invoke_result_t<Work, const Connection&>>
  Task<Result> Call(const char* name, std::string what, Work work, int timeouts = 1);
  template <class Work, class Result = std::invoke_result_t<Work, const Connection&>>
  Task<Result> CallOnce(std::string what, Work work, Duration limit);
  template <class Result>
  Task<Result> Measured(const char* name, Task<Result> call);
  void Lose(int generation, std::string why);
  // On a thread: closing blocks.
  void CloseConnection();

  Loop& loop_;
  HostConfig host_;
  Duration call_timeout_;
  std::shared_ptr<LoopPort> port_;
  CallThreads threads_;
  CallThreads bulk_threads_;                // for uploads, on connections of their own
  std::shared_ptr<Connection> connection_;  // null: none is open
  int generation_ = 0;                      // of connections
};

}  // namespace nodepool::drivers::libvirt
