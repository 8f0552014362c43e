#include "driver/plugin.h"

#include "drivers/libvirt/libvirt_driver.h"

NODEPOOL_DRIVER(nodepool::drivers::libvirt::Driver)
