#pragma once

#include <libvirt/libvirt.h>

#include <memory>

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

}  // namespace nodepool::drivers::libvirt
