#pragma once

#include <map>
#include <string>
#include <utility>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

struct Site;

// Fetches the cloud images that have a URL and that labels use, once to each host. Their labels are not ready
// before a host has the image.
class Fetches {
 public:
  // `site` outlives this object, and the fetches belong to its tasks.
  explicit Fetches(Site& site) : site_(site) {}

  // Begins to fetch what usable hosts lack, unless that is under way or failed a short while ago.
  void Begin();

 private:
  using Key = std::pair<std::string, std::string>;  // host and image's name in the configuration

  Task<> Run(Host& host, std::string image);

  Site& site_;
  std::map<Key, SteadyTime> next_tries_;  // a time far away: it is under way, or done
};

}  // namespace nodepool::drivers::libvirt
