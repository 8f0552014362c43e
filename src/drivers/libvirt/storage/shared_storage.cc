#include "drivers/libvirt/storage/shared_storage.h"

#include <algorithm>

namespace nodepool::drivers::libvirt {

bool ShareStorage(const Host& one, const Host& other) {
  if (&one == &other) return true;
  const std::string& storage = one.size().shared_storage;
  return !storage.empty() && storage == other.size().shared_storage;
}

std::vector<Host*> OneOfEachStorage(const std::vector<Host*>& hosts) {
  std::vector<Host*> chosen;
  for (Host* host : hosts) {
    auto shares = [host](const Host* other) { return ShareStorage(*host, *other); };
    if (std::ranges::none_of(chosen, shares)) chosen.push_back(host);
  }
  return chosen;
}

}  // namespace nodepool::drivers::libvirt
