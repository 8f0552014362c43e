#pragma once

#include <string>

namespace nodepool::drivers::libvirt {

// Files of a host with which a machine is started in place of its disk's boot loader.
struct DirectKernel {
  std::string kernel;
  std::string initrd;     // "": none
  std::string arguments;  // the kernel's command line
};

}  // namespace nodepool::drivers::libvirt
