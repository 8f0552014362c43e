#include "drivers/libvirt/host/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::size_t kMaxMessage = 500;

bool IsFull(std::string_view message) {
  return message.find("No space left on device") != std::string_view::npos ||
         message.find("Cannot allocate memory") != std::string_view::npos;
}

Verdict VerdictOfCode(int code) {
  switch (code) {
    case VIR_ERR_NO_DOMAIN:
    case VIR_ERR_NO_STORAGE_VOL:
      return Verdict::kNotFound;
    case VIR_ERR_STORAGE_VOL_EXIST:
    case VIR_ERR_DOM_EXIST:
      return Verdict::kConflict;
    case VIR_ERR_NO_STORAGE_POOL:
    case VIR_ERR_NO_NETWORK:
    case VIR_ERR_NO_NWFILTER:
    case VIR_ERR_XML_ERROR:
    case VIR_ERR_XML_DETAIL:
    case VIR_ERR_CONFIG_UNSUPPORTED:
    case VIR_ERR_INVALID_ARG:
    case VIR_ERR_AUTH_FAILED:
      return Verdict::kInvalid;
    case VIR_ERR_NO_CONNECT:
    case VIR_ERR_RPC:
    case VIR_ERR_INVALID_CONN:
    case VIR_ERR_OPERATION_TIMEOUT:
    case VIR_ERR_AGENT_UNRESPONSIVE:
      return Verdict::kRetry;
    default:
      return Verdict::kFail;
  }
}

std::string_view Hint(int code, std::string_view message) {
  if (code == VIR_ERR_NO_STORAGE_POOL)
    return "; make the pool with virsh pool-define-as, or set storage-pool";
  if (code == VIR_ERR_NO_NETWORK) return "; start it with virsh net-start, or set network";
  if (code == VIR_ERR_NO_NWFILTER) return "; set security-filter to one that virsh nwfilter-list shows";
  if (message.find("firmware to satisfy") != std::string_view::npos ||
      message.find("firmware that is compatible") != std::string_view::npos) {
    return "; install the host's UEFI firmware (Debian: ovmf), or set firmware: bios";
  }
  // Of the process, "exited while connecting to monitor" or "closed the monitor".
  bool has_qemu_ended = message.find("monitor") != std::string_view::npos;
  if (has_qemu_ended && message.find("kvm") != std::string_view::npos) {
    return "; if QEMU cannot use this host's KVM, set accelerator to tcg";
  }
  if (message.find("Host key verification failed") != std::string_view::npos) {
    return "; compare the key that ssh-keyscan shows with the host's, and add it to the known_hosts of the "
           "user "
           "that Nodepool runs as";
  }
  if (message.find("Permission denied") != std::string_view::npos) {
    return "; QEMU's user needs the right to search (x) every folder above the storage pool";
  }
  return "";
}

}  // namespace

Error FaultOf(const std::string& what, int code, const std::string& message) {
  Verdict verdict = IsFull(message) ? Verdict::kQuota : VerdictOfCode(code);
  return Error(verdict, fmt::format("{}: {}{}", what, Excerpt(message, kMaxMessage), Hint(code, message)));
}

Error LastFault(const std::string& what) {
  const virError* error = virGetLastError();
  if (error == nullptr) return Error(Verdict::kFail, what + ": libvirt gives no cause");
  return FaultOf(what, error->code, error->message != nullptr ? error->message : "no message");
}

int LastCode() {
  const virError* error = virGetLastError();
  return error == nullptr ? VIR_ERR_OK : error->code;
}

}  // namespace nodepool::drivers::libvirt
