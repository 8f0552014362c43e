#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/clock.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

// What a host has, without regard to what is in use.
struct HostSize {
  int cores = 0;
  double memory = 0;  // MiB
  bool offers_kvm = false;
  // What the storage pool is on where several hosts may have it: "netfs nfs.example.org:/srv/jobs". Empty: it
  // is the host's own.
  std::string shared_storage = {};
  std::string architecture = "x86_64";  // as the kernel names it, or aarch64
};

// A storage pool's space in bytes.
struct PoolSpace {
  std::uint64_t capacity = 0;
  std::uint64_t available = 0;
};

// An address that an interface has.
struct KnownAddress {
  std::string mac;  // lower case
  std::string address;
  bool is_ipv6 = false;
};

enum class AddressSource { kAgent, kArp };

// Told on the loop of what a host announces.
class HypervisorListener {
 public:
  virtual ~HypervisorListener() = default;
  // An open connection was lost.
  virtual void ConnectionLost(std::string why) = 0;
  // A domain, ours or not, has started, and has ended.
  virtual void DomainStarted(std::string uuid) = 0;
  virtual void DomainEnded(std::string uuid) = 0;
  // A domain was paused, since a disk of it could not be written. `reason` is libvirt's, e.g. "enospc", or
  // empty.
  virtual void DomainPaused(std::string uuid, std::string reason) = 0;
  // A call has ended that was not cancelled. `call` is a word for what it does; false: it failed, or was not
  // answered in time; that something is not there is an answer.
  virtual void CallEnded(const char* call, Duration took, bool is_ok) = 0;
};

// A host's libvirt, with one storage pool: strings and numbers in place of libvirt's types. Every call ends:
// with kRetry when the host does not answer in time. A call that was cancelled may still be carried out, and
// so may one that the loss of the connection has ended, with kRetry and after ConnectionLost.
// Calls may run at the same time.
class Hypervisor {
 public:
  // The listener outlives it.
  explicit Hypervisor(HypervisorListener& listener) : listener_(listener) {}
  virtual ~Hypervisor() = default;

  // (Re)connects. kRetry: the host cannot be reached. kInvalid: an operator has to mend something there.
  virtual Task<> Connect() = 0;
  virtual Task<HostSize> Size() = 0;
  virtual Task<PoolSpace> Space() = 0;

  // The XML of every active domain.
  virtual Task<std::vector<std::string>> Domains() = 0;
  // Returns when the machine runs. kConflict: a domain with this name or UUID exists.
  virtual Task<> StartDomain(std::string xml) = 0;
  // Ends the domain at once; none with this UUID is success.
  virtual Task<> DestroyDomain(std::string uuid) = 0;

  // Lets a domain that was paused continue. kNotFound: there is none with this UUID.
  virtual Task<> ResumeDomain(std::string uuid) = 0;

  // Saves the machine's memory to the volume, which is replaced, and ends the machine. Ends within `limit`.
  virtual Task<> SaveDomain(std::string uuid, std::string volume, Duration limit) = 0;
  // Starts the machine whose memory and description are saved in the volume. kConflict as StartDomain.
  virtual Task<> RestoreDomain(std::string volume) = 0;
  // What the agent in the guest answers to a command, both in JSON. kRetry: it is not there yet, or does not
  // answer.
  virtual Task<std::string> AskAgent(std::string uuid, std::string command) = 0;

  // Of the storage pool, read anew.
  virtual Task<std::vector<VolumeInfo>> Volumes() = 0;
  // kNotFound: there is none.
  virtual Task<VolumeInfo> Volume(std::string name) = 0;
  // Returns its path. kConflict: the name is in use.
  virtual Task<std::string> CreateVolume(NewVolume volume) = 0;
  // Writes the bytes to the beginning of a volume.
  virtual Task<> WriteVolume(std::string name, std::string bytes) = 0;
  // Writes a local file into a volume of its length, without the file's holes; returns the file's SHA-256 in
  // hex. Ends within `limit`. Works beside other calls, however long it takes.
  virtual Task<std::string> UploadVolume(std::string name, std::string path, Duration limit) = 0;
  // The first `most` bytes of a raw volume.
  virtual Task<std::string> ReadVolumeStart(std::string name, std::uint64_t most) = 0;
  // Copies the volume of this name of another host, without its holes, into this host's, which is as long as
  // the other one's file. Ends within `limit`; like UploadVolume it works beside other calls.
  virtual Task<> CopyVolume(HostConfig source, std::string name, Duration limit) = 0;
  // Makes the volume of what is at the origin's URL. kRetry: that cannot be fetched now. kInvalid: it has
  // another checksum. What a failure leaves of the volume stays. Works beside other calls.
  virtual Task<> FetchVolume(std::string name, ImageOrigin origin, Duration limit) = 0;
  // The last `most` bytes of a raw volume.
  virtual Task<std::string> ReadVolumeEnd(std::string name, std::uint64_t most) = 0;
  // A volume that does not exist is success.
  virtual Task<> DeleteVolume(std::string name) = 0;

  // What the network's DHCP server has handed out and has not expired.
  virtual Task<std::vector<KnownAddress>> Leases(std::string network) = 0;
  // How many IPv4 addresses the network's DHCP server may hand out; 0: it has none.
  virtual Task<std::uint64_t> LeaseRange(std::string network) = 0;
  // What the guest agent in the domain, or the host's ARP table, knows of the domain's addresses. An error
  // where that knows nothing, e.g. since no agent runs.
  virtual Task<std::vector<KnownAddress>> Addresses(std::string uuid, AddressSource source) = 0;

  // Ends calls in progress as far as possible. Nothing may be called afterwards.
  virtual Task<> Stop() = 0;

 protected:
  HypervisorListener& listener_;
};

// Makes the connection to a host, which tells the listener of it.
using MakeHypervisor = std::function<std::unique_ptr<Hypervisor>(const HostConfig&, HypervisorListener&)>;

}  // namespace nodepool::drivers::libvirt
