#include "drivers/libvirt/host/pools.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include "drivers/libvirt/host/faults.h"
#include "drivers/libvirt/xml/pool_xml.h"

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

}  // namespace nodepool::drivers::libvirt
