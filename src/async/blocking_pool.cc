#include "async/blocking_pool.h"

#include <pthread.h>

namespace nodepool {

BlockingPool::BlockingPool(std::size_t threads) {
  if (threads == 0) return;
  // Threads inherit the name of the one that creates them; stack dumps show it.
  char own[16] = "";
  pthread_getname_np(pthread_self(), own, sizeof(own));
  pthread_setname_np(pthread_self(), "blocking pool");
  pool_.emplace(threads);
  pthread_setname_np(pthread_self(), own);
}

}  // namespace nodepool
