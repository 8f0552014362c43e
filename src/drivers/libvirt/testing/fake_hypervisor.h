#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt::testing {

// Keeps what a connection to a host tells.
struct HostRecorder : HypervisorListener {
  void ConnectionLost(std::string why) override { losses.push_back(std::move(why)); }
  void DomainStarted(std::string) override {}
  void DomainEnded(std::string) override {}
  void DomainPaused(std::string, std::string) override {}
  void CallEnded(const char* call, Duration, bool is_ok) override {
    calls.push_back(fmt::format("{} {}", call, is_ok));
  }

  std::vector<std::string> losses;
  std::vector<std::string> calls;  // "size true"
};

// What a host has, whoever is connected to it.
struct FakeHost {
  std::map<std::string, std::string> domains;  // XML by UUID
  std::map<std::string, VolumeInfo> volumes;
  std::map<std::string, std::string> contents;  // of volumes that were written
  std::map<std::string, SteadyTime> started;    // machines, by MAC
  std::map<std::string, std::size_t> numbers;   // of the addresses given out, by MAC
};

// A host in memory, in virtual time: what it was made of is read from the same XML that a real host gets.
// Every call takes a while; machines get an address some time after their start.
class FakeHypervisor : public Hypervisor {
  std::shared_ptr<FakeHost> host_;

 public:
  FakeHypervisor(Loop& loop, HypervisorListener& listener,
                 std::shared_ptr<FakeHost> host = std::make_shared<FakeHost>())
      : Hypervisor(listener), host_(std::move(host)), loop_(loop) {}

  Task<> Connect() override;
  Task<HostSize> Size() override;
  Task<PoolSpace> Space() override;
  Task<std::vector<std::string>> Domains() override;
  Task<> StartDomain(std::string xml) override;
  Task<> DestroyDomain(std::string uuid) override;
  Task<> ResumeDomain(std::string uuid) override;
  Task<> SaveDomain(std::string uuid, std::string volume, Duration limit) override;
  Task<> RestoreDomain(std::string volume) override;
  Task<std::string> AskAgent(std::string uuid, std::string command) override;
  Task<std::vector<VolumeInfo>> Volumes() override;
  Task<VolumeInfo> Volume(std::string name) override;
  Task<std::string> CreateVolume(NewVolume volume) override;
  Task<> WriteVolume(std::string name, std::string bytes) override;
  Task<std::string> UploadVolume(std::string name, std::string path, Duration limit) override;
  Task<std::string> ReadVolumeStart(std::string name, std::uint64_t most) override;
  Task<> CopyVolume(HostConfig source, std::string name, Duration limit) override;
  Task<> FetchVolume(std::string name, ImageOrigin origin, Duration limit) override;
  Task<std::string> ReadVolumeEnd(std::string name, std::uint64_t most) override;
  Task<> DeleteVolume(std::string name) override;
  Task<std::vector<KnownAddress>> Leases(std::string network) override;
  Task<std::uint64_t> LeaseRange(std::string network) override;
  Task<std::vector<KnownAddress>> Addresses(std::string uuid, AddressSource source) override;
  Task<> Stop() override;

  // Adds a volume that is not ours.
  void AddVolume(VolumeInfo volume) { volumes[volume.name] = std::move(volume); }
  // A machine cannot write to its disk.
  void PauseDomain(std::string uuid, std::string reason) {
    listener_.DomainPaused(std::move(uuid), std::move(reason));
  }
  // Tells of a call, as if it had ended.
  void EndCall(const char* call, Duration took, bool is_ok) { listener_.CallEnded(call, took, is_ok); }
  // A machine powers off.
  void EndDomain(std::string uuid);
  // The connection breaks; the next attempts to connect fail until `is_reachable` is set.
  void Break(const std::string& why);
  // Calls made before wait until the host is let go on.
  void Stall() { is_stalled_ = true; }
  void GoOn();

  HostSize size{8, 16384, false};
  PoolSpace space{std::uint64_t{200} << 30, std::uint64_t{150} << 30};
  std::map<std::string, FakeHypervisor*>* peers = nullptr;  // by name; from which volumes are copied
  Duration copy_time = std::chrono::minutes(1);
  int copies = 0;
  int fetches = 0;
  std::string checksum = "5e";   // of whatever is fetched
  bool fails_transfers = false;  // uploads and copies, when half is written
  Duration call_time = std::chrono::milliseconds(20);
  std::string sha256 = "5e";                     // of whatever is uploaded
  Duration boot_time = std::chrono::seconds(5);  // to the lease
  bool is_reachable = true;
  // When the connection breaks at the first call that makes something: each volume, its content, each domain.
  enum class Loss { kNever, kBefore, kAfter };
  Loss loss = Loss::kNever;
  int losses = 0;
  // Called before and after each call that changes something of the host; may throw.
  std::function<void(Loss moment, const std::string& write)> at_write = [](Loss, const std::string&) {};
  // Whether the process that is connected has died: none of its calls reaches the host.
  std::function<bool()> is_cut = [] { return false; };
  std::map<std::string, std::string>& domains = host_->domains;
  std::map<std::string, VolumeInfo>& volumes = host_->volumes;
  std::map<std::string, std::string>& contents = host_->contents;
  int calls = 0;
  int lease_calls = 0;
  std::uint64_t lease_range = 253;
  std::vector<KnownAddress> former_leases;  // of machines that are gone
  bool gives_one_address = false;           // to all machines
  std::vector<std::string> resumed;         // UUIDs of machines
  bool refuses_to_resume = false;
  std::vector<std::string> restored;  // UUIDs of machines
  std::vector<std::string> scripts;   // that guests have run
  // The exit status of a script in a guest. The agent is there with the lease, at once after a restoration.
  // After a script without fault that was written to a pipe it knows the address.
  std::function<int(const std::string& uuid, const std::string& script)> run_script =
      [](const std::string&, const std::string&) { return 0; };
  // What agents and the ARP table know of any domain's interface: an address each.
  std::map<AddressSource, std::string> addresses;
  std::set<int> taken_ports;       // of the host, by others
  std::vector<int> refused_ports;  // that machines were to have

 private:
  Task<> Call();
  std::string AddressOf(const std::string& mac) const;
  void MayBreak(Loss moment, const std::string& call);
  bool IsFile(const std::string& path) const;

  Loop& loop_;
  std::map<std::string, SteadyTime>& started_ = host_->started;
  int script_status_ = 0;
  std::set<std::string> with_identity_;  // machines
  bool is_connected_ = false;
  bool is_stalled_ = false;
  std::set<std::string> broken_;  // calls at which the connection broke
  WaitList stalled_;
};

}  // namespace nodepool::drivers::libvirt::testing
