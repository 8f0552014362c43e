#pragma once

#include <chrono>
#include <string>

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
