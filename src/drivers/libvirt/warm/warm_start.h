#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/clock.h"
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

// Shell scripts for a machine whose memory is saved once and restored often (driver-libvirt.md 6.2). They
// need /bin/sh, ip, date, mkfifo, perl or python3, and sshd in the guest.

// Ends with 0 when the machine has booted and its sshd listens on the port.
std::string HasBootedScript(int ssh_port);

// Makes a machine that has booted ready to be saved: without network and SSH host keys, with a shell that
// waits at kIdentityPipe for a script, and with a program that waits for random numbers. Ends with 1 and a
// sentence where the random numbers of restored machines could not be made differ, or where it is not known
// how the network is stopped.
std::string PrepareScript();

// In the guest. What the shell that waits there writes goes to the log.
inline constexpr const char* kIdentityPipe = "/run/nodepool/identity";
inline constexpr const char* kIdentityLog = "/run/nodepool/log";

// What makes a restored machine another one.
struct Identity {
  std::string hostname;
  std::string machine_id;  // 32 hex digits
  std::string mac;
  std::string host_key;  // a private key, as OpenSSH writes it
  std::string public_host_key;
  std::string random;  // bytes
  int ssh_port = 22;
};

// For the shell that waits: gives the restored machine its identity at the time `now`, and begins to start
// its network when sshd no longer shows the host key that it had before. So an address shows that all was
// done.
std::string IdentityScript(const Identity& identity, std::chrono::system_clock::time_point now);

struct Creation;

// What this process knows of a template.
struct WarmTemplate {
  Gate gate{1};  // one machine at a time makes it, or is restored from it
  SteadyTime retry_at{};
};

using WarmTemplates = std::map<std::string, WarmTemplate>;  // by MachineId::ToText

// Starts the machine from the saved memory of its label's template, and makes that first where its host has
// none (driver-libvirt.md 6.2). Returns its address; the machine then has its own identity, among it
// creation.host_key. nullopt: that is not possible now, the log says why; nothing of the machine is left on
// the host, and it has to be booted.
Task<std::optional<std::string>> StartWarm(Creation& creation);

}  // namespace nodepool::drivers::libvirt
