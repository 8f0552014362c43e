#include "drivers/libvirt/host/places.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/xml/host_xml.h"

namespace nodepool::drivers::libvirt {

namespace {

PoolHandle FindPool(virConnectPtr connection, const std::string& name) {
  return PoolHandle(virStoragePoolLookupByName(connection, name.c_str()));
}

// Null: it could not be defined, perhaps since another connection has made it meanwhile.
PoolHandle DefinePool(virConnectPtr connection, const StoragePool& pool) {
  PoolHandle made(virStoragePoolDefineXML(connection, PoolXml(pool.name, *pool.path).c_str(), 0));
  if (!made) return made;
  std::string what = fmt::format("making storage pool {} in {}", pool.name, *pool.path);
  if (virStoragePoolBuild(made.get(), 0) < 0 || virStoragePoolSetAutostart(made.get(), 1) < 0) {
    Error fault = LastFault(what);
    virStoragePoolUndefine(made.get());
    throw fault;
  }
  return made;
}

}  // namespace

PoolHandle OpenPool(virConnectPtr connection, const StoragePool& pool) {
  std::string what = fmt::format("opening storage pool {}", pool.name);
  PoolHandle opened = FindPool(connection, pool.name);
  bool is_missing = !opened && LastCode() == VIR_ERR_NO_STORAGE_POOL;
  if (is_missing && pool.path) opened = DefinePool(connection, pool);
  if (!opened) {
    Error fault = LastFault(what);
    opened = FindPool(connection, pool.name);
    if (!opened) throw fault;
  }
  if (virStoragePoolIsActive(opened.get()) == 1 || virStoragePoolCreate(opened.get(), 0) == 0) return opened;
  Error fault = LastFault(what);
  if (virStoragePoolIsActive(opened.get()) != 1) throw fault;
  return opened;
}

namespace {

NetworkHandle FindNetwork(virConnectPtr connection, const std::string& name) {
  return NetworkHandle(virNetworkLookupByName(connection, name.c_str()));
}

bool IsActive(const NetworkHandle& network) { return virNetworkIsActive(network.get()) == 1; }

// Null: it could not be defined, perhaps since another connection has made it meanwhile.
NetworkHandle DefineNetwork(virConnectPtr connection, const NewNetwork& network) {
  NetworkHandle made(virNetworkDefineXML(connection, NetworkXml(network).c_str()));
  if (made && virNetworkSetAutostart(made.get(), 1) < 0) throw LastFault("making network " + network.name);
  return made;
}

void StartNetwork(const NetworkHandle& network, const std::string& what) {
  if (virNetworkCreate(network.get()) == 0) return;
  Error fault = LastFault(what);
  if (!IsActive(network)) throw fault;
}

}  // namespace

void OpenNetwork(virConnectPtr connection, const std::string& name, const std::optional<NewNetwork>& made) {
  std::string what = fmt::format("finding network {}", name);
  NetworkHandle network = FindNetwork(connection, name);
  bool is_missing = !network && LastCode() == VIR_ERR_NO_NETWORK;
  if (is_missing && made) network = DefineNetwork(connection, *made);
  if (!network) {
    Error fault = LastFault(what);
    network = FindNetwork(connection, name);
    if (!network) throw fault;
  }
  if (IsActive(network)) return;
  if (made) return StartNetwork(network, fmt::format("starting network {}", name));
  throw Error(Verdict::kInvalid,
              fmt::format("{}: it is not active; start it with virsh net-start {}", what, name));
}

}  // namespace nodepool::drivers::libvirt
