#include "driver/plugin.h"

// Uses a function that the program does not have.
namespace nodepool::driver {
std::unique_ptr<Driver> MakeDriverOfTheFuture();
}

const char nodepool_driver_api[] = NODEPOOL_DRIVER_API_MARK NODEPOOL_DRIVER_API;
nodepool::driver::Driver* nodepool_create_driver() {
  return nodepool::driver::MakeDriverOfTheFuture().release();
}
