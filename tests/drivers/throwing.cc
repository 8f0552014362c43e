#include <stdexcept>

#include "driver/plugin.h"

const char nodepool_driver_api[] = NODEPOOL_DRIVER_API_MARK NODEPOOL_DRIVER_API;
nodepool::driver::Driver* nodepool_create_driver() { throw std::runtime_error("the licence has run out"); }
