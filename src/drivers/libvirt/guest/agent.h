#pragma once

#include <string>

#include "async/loop.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt {

struct GuestResult {
  int status = 0;      // the script's exit status
  std::string output;  // what it wrote, with its errors
};

// Runs a shell script as root in a machine by its guest agent, and waits for its end. Waits for the agent if
// it is not there yet. Error(kTimedOut): all of that has taken longer than `limit`. Error(kFail): the agent
// refuses to run programs.
Task<GuestResult> RunInGuest(Loop& loop, Hypervisor& host, std::string uuid, std::string script,
                             Duration limit);

// Writes the bytes into a file that is there, e.g. a pipe at which a program waits. Waits and fails as above.
Task<> WriteInGuest(Loop& loop, Hypervisor& host, std::string uuid, std::string path, std::string bytes,
                    Duration limit);

}  // namespace nodepool::drivers::libvirt
