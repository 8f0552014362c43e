#pragma once

#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "drivers/libvirt/config/libvirt_config.h"

namespace nodepool::drivers::libvirt {

// What machines take of a host.
struct Need {
  double instances = 1;
  double cores = 0;
  double memory = 0;  // MiB
  double disk = 0;    // GiB

  void Add(const Need& other) {
    instances += other.instances;
    cores += other.cores;
    memory += other.memory;
    disk += other.disk;
  }
};

// A host as placement sees it.
struct HostRoom {
  std::string name;
  std::string unusable;  // why no machine can be made there; empty: it can
  Need limit;            // instances may be infinite
  Need used;             // by what runs, is being made and is being deleted there
  // Whether the image is there, or can be copied from another host.
  bool has_image = true;
  bool can_get_image = false;
};

// Why no host was chosen.
struct NoHost {
  bool is_forever = false;  // no host is large enough even when it is empty
  std::string reasons;      // of each host: "b: 2 of 8 cores free, needs 4"
};

// The host for a machine: among those that have room for it and can have its image, one that has the image,
// then the one that is used least (spread) or most (pack) by its scarcest resource, then by name. Pure.
std::expected<std::string, NoHost> ChooseHost(const std::vector<HostRoom>& hosts, const Need& need,
                                              Placement placement);

}  // namespace nodepool::drivers::libvirt
