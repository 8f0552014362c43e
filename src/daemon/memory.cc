#include "daemon/memory.h"

#include <cstddef>

// Two arenas, not four per processor: each keeps what its threads have freed.
extern "C" const char* malloc_conf =
    "narenas:2,max_background_threads:1,dirty_decay_ms:5000,muzzy_decay_ms:0";

// Of jemalloc.
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old_value, std::size_t* old_size,
                                     void* new_value, std::size_t new_size);

namespace nodepool::daemon {

bool ReturnUnusedMemory() {
  bool is_on = true;
  return mallctl != nullptr && mallctl("background_thread", nullptr, nullptr, &is_on, sizeof(is_on)) == 0;
}

}  // namespace nodepool::daemon
