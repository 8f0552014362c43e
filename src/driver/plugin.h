#pragma once

#include <fmt/core.h>

#include <boost/version.hpp>

#include "driver/driver.h"

// A driver outside of the programs is a shared object that has, once, in one of its sources:
//
//   NODEPOOL_DRIVER(my_cloud::Driver)
//
// The class is a nodepool::driver::Driver with a default constructor. The object is put
// into a drivers directory (load_drivers.h).

// Incremented with every change of an installed header that affects compiled drivers.
#define NODEPOOL_DRIVER_API_VERSION 11

#define NODEPOOL_TEXT_OF(value) #value
#define NODEPOOL_TEXT(value) NODEPOOL_TEXT_OF(value)

// What a driver and the programs must agree on; read from the file before any of its code runs.
#define NODEPOOL_DRIVER_API_MARK "nodepool-driver-api: "
#define NODEPOOL_DRIVER_API                                                                                  \
  "version " NODEPOOL_TEXT(NODEPOOL_DRIVER_API_VERSION) ", Boost " BOOST_LIB_VERSION ", fmt " NODEPOOL_TEXT( \
      FMT_VERSION) ", libstdc++ " NODEPOOL_TEXT(_GLIBCXX_RELEASE)

extern "C" {
[[gnu::visibility("default")]] extern const char nodepool_driver_api[];
[[gnu::visibility("default")]] nodepool::driver::Driver* nodepool_create_driver();
}

// Makes the class the driver of this shared object.
#define NODEPOOL_DRIVER(type)                                                      \
  const char nodepool_driver_api[] = NODEPOOL_DRIVER_API_MARK NODEPOOL_DRIVER_API; \
  nodepool::driver::Driver* nodepool_create_driver() { return new type; }
