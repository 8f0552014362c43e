#pragma once

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "drivers/libvirt/config/libvirt_config.h"

namespace nodepool::drivers::libvirt {

// libvirt's objects, freed when they go.
template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using DomainHandle = std::unique_ptr<virDomain, Free<virDomainFree>>;
using NetworkHandle = std::unique_ptr<virNetwork, Free<virNetworkFree>>;
using PoolHandle = std::unique_ptr<virStoragePool, Free<virStoragePoolFree>>;
using VolumeHandle = std::unique_ptr<virStorageVol, Free<virStorageVolFree>>;
using StreamHandle = std::unique_ptr<virStream, Free<virStreamFree>>;
using InterfaceHandle = std::unique_ptr<virDomainInterface, Free<virDomainInterfaceFree>>;
using LeaseHandle = std::unique_ptr<virNetworkDHCPLease, Free<virNetworkDHCPLeaseFree>>;
// A text, or a list of objects, that libvirt has allocated.
template <class T>
using Allocated = std::unique_ptr<T, Free<::free>>;

// An open connection to a host's libvirt, and its storage pool. Everything here blocks and is called on the
// host's threads, also the destructor. May be used by several threads at a time.
class Connection {
 public:
  // Called on other threads.
  struct Events {
    std::function<void(std::string why)> lost;
    std::function<void(std::string uuid)> domain_started;
    std::function<void(std::string uuid)> domain_ended;
    // A machine is paused, since a disk of it could not be written; libvirt's word for why, or "".
    std::function<void(std::string uuid, std::string reason)> domain_paused;
  };

  // Opens the connection and sees that pool and network, which machines need, exist and run; makes them if
  // configured so. kRetry: the host cannot be reached. kInvalid: something has to be mended there.
  static std::shared_ptr<Connection> Open(const HostConfig& host, Events events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Why it cannot be used any more, as far as is known without a call; nullopt: it can.
  std::optional<std::string> Fault() const;
  // After a call that failed: notes where the storage pool is not active any more.
  void CheckPool() const;
  virConnectPtr get() const { return connection_; }
  virStoragePoolPtr pool() const { return pool_.get(); }
  // kNotFound: there is none.
  VolumeHandle FindVolume(const std::string& name) const;

 private:
  explicit Connection(virConnectPtr connection) : connection_(connection) {}
  void Follow(Events events);
  void Register(int event, virConnectDomainEventGenericCallback callback, const Events& events);

  virConnectPtr connection_;
  std::unique_ptr<Events> for_end_;
  PoolHandle pool_;
  std::string pool_name_;
  mutable std::atomic<bool> has_lost_pool_ = false;
  std::vector<int> registrations_;  // of events
};

// libvirt's answer as our error, with libvirt's own words (driver-libvirt.md 17). `what` says what was tried.
Error FaultOf(const std::string& what, int code, const std::string& message);

// Of the calling thread's last call; to be read at once after it.
Error LastFault(const std::string& what);
int LastCode();

}  // namespace nodepool::drivers::libvirt
