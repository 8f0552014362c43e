#pragma once

#include <boost/asio/ip/network_v4.hpp>
#include <optional>
#include <string>

#include "config/schema/section.h"

namespace nodepool::drivers::libvirt {

// A storage pool of a host.
struct StoragePool {
  std::string name;
  // Where the pool is made if the host has none of the name; none: it has to exist.
  std::optional<std::string> path;
};

// A network that is made if the host has none of the name.
struct NewNetwork {
  std::string name;
  boost::asio::ip::network_v4 subnet;  // its base address; at least four machines fit
  bool is_isolated = false;            // machines do not reach each other
};

// `storage-pool`: a name, or a mapping. Error(kInvalid) names line and column.
StoragePool ReadStoragePool(const config::Section& section, const StoragePool& otherwise);

// `network` where it is a mapping; none where it is a name or not set. Error(kInvalid) names line and column.
std::optional<NewNetwork> ReadNewNetwork(const config::Section& section);

}  // namespace nodepool::drivers::libvirt
