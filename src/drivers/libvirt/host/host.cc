#include "drivers/libvirt/host/host.h"

#include <fmt/format.h>

#include <set>

#include "async/backoff.h"

namespace nodepool::drivers::libvirt {

namespace {

// Beyond min-free-disk: a paused machine would stop again at once otherwise.
constexpr std::uint64_t kRoomToContinue = 64 << 20;
constexpr Duration kRecent = std::chrono::seconds(5);
constexpr Backoff::Settings kPauses{std::chrono::seconds(1), std::chrono::seconds(60)};

}  // namespace

Host::Host(TaskGroup& tasks, Random& random, HostConfig config, const MakeHypervisor& make,
           log::Logger logger, HostListener& listener)
    : tasks_(tasks),
      random_(random),
      config_(std::move(config)),
      hypervisor_(make(config_, *this)),
      logger_(std::move(logger)),
      listener_(listener),
      work_(tasks),
      addresses_(tasks, random, logger_, *this) {}

void Host::Start() {
  if (std::exchange(is_started_, true)) return;
  tasks_.Spawn("connection to host " + name(), KeepConnected());
}

Task<> Host::Reached() {
  while (fault_ && fault_->verdict() == Verdict::kRetry) co_await changed_fault_.Wait();
  // What an operator has to mend says nothing of a machine: its launch waits, or another host serves it.
  if (fault_)
    throw Error(Verdict::kQuota, fmt::format("host {} cannot be used: {}", name(), fault_->message()));
}

Task<> Host::Tried() { return tried_.Wait(); }

bool Host::uses_kvm() const {
  return config_.accelerator == Accelerator::kKvm ||
         (config_.accelerator == Accelerator::kAuto && size_.offers_kvm);
}

// Capabilities show only that the device is there.
void Host::NoteFailedBoot(const std::string& console) {
  bool has_chosen_kvm = config_.accelerator == Accelerator::kAuto && uses_kvm();
  bool has_kernel = console.find("Linux version") != std::string::npos;
  if (!has_chosen_kvm || has_kernel || std::exchange(is_kvm_suspected_, true)) return;
  logger_.Warning(
      "Host {} offers KVM, but no kernel has written to the console of a machine there; if its images have a "
      "serial "
      "console (console=ttyS0), its KVM cannot run them: set accelerator to tcg",
      name());
}

Hypervisor& Host::Use() {
  if (fault_) throw fault_->In("host " + name());
  return *hypervisor_;
}

Task<std::vector<DomainInfo>> Host::Domains() {
  if (fault_) co_return domains_;
  co_return co_await ReadDomains();
}

Task<std::vector<DomainInfo>> Host::RecentDomains() {
  bool is_recent = listed_at_ && tasks_.loop().SteadyNow() - *listed_at_ < kRecent;
  if (is_recent) co_return domains_;
  co_return co_await Domains();
}

Task<std::vector<DomainInfo>> Host::ReadDomains() {
  std::vector<std::string> list = co_await hypervisor_->Domains();
  std::vector<DomainInfo> domains;
  for (const std::string& xml : list) domains.push_back(ParseDomain(xml));
  domains_ = domains;
  listed_at_ = tasks_.loop().SteadyNow();
  listener_.HostMeasured(*this);
  co_return domains;
}

Task<> Host::Stop() { return hypervisor_->Stop(); }

Task<> Host::KeepConnected() {
  Backoff pauses(kPauses, random_);
  while (true) {
    lost_.Reset();
    Outcome<> opened = co_await Attempt(Open());
    Report(opened ? std::nullopt : std::optional(Error(opened.error().verdict(), opened.error().message())));
    tried_.Set();
    if (opened) {
      pauses.Reset();
      co_await lost_.Wait();
    }
    co_await tasks_.loop().SleepFor(pauses.Next());
  }
}

Task<> Host::Open() {
  co_await hypervisor_->Connect();
  size_ = co_await hypervisor_->Size();
  co_await ReadDomains();
  NoteWhatEnded();
  if (config_.accelerator == Accelerator::kKvm && !size_.offers_kvm) {
    throw Error(Verdict::kInvalid, "it offers no KVM; set accelerator to tcg, or enable KVM there");
  }
}

// Nothing announces what happened while the connection was down.
void Host::NoteWhatEnded() {
  std::set<std::string> running;
  for (const DomainInfo& domain : domains_) running.insert(domain.uuid);
  for (auto& [uuid, has_ended] : has_ended_) has_ended = has_ended || !running.contains(uuid);
}

void Host::ConnectionLost(std::string why) {
  ++losses_;
  Report(Error(Verdict::kRetry, std::move(why)));
  lost_.Set();
}

void Host::DomainStarted(std::string uuid) {
  if (!IsOurs(uuid)) listener_.ForeignChanged(*this);
}

void Host::DomainEnded(std::string uuid) {
  bool is_ours = IsOurs(uuid);
  if (!is_ours) listener_.ForeignChanged(*this);
  auto machine = has_ended_.find(uuid);
  if (machine != has_ended_.end()) machine->second = true;
  bool was_full = IsFull();
  paused_.Remove(uuid);
  if (was_full && !IsFull()) listener_.HostChanged(*this);
  if (!is_ours || expected_ends_.contains(uuid)) return;
  listed_at_.reset();  // the list shows it
  listener_.MachineLost(*this);
}

void Host::DomainPaused(std::string uuid, std::string reason) {
  if (!IsOurs(uuid)) return;
  logger_.Warning("Machine {} on host {} is paused, since its disk could not be written: {}", NameOf(uuid),
                  name(),
                  reason == "enospc" ? "the storage pool is full; nothing new is made there, and the machine "
                                       "continues when the pool has min-free-disk again"
                                     : "I/O error " + reason);
  paused_.Add(uuid, std::move(reason));
}

void Host::CallEnded(const char* call, Duration took, bool is_ok) {
  listener_.CallEnded(*this, call, took, is_ok);
}

const DomainInfo* Host::FindListed(const std::string& uuid) const {
  auto found = std::ranges::find(domains_, uuid, &DomainInfo::uuid);
  return found == domains_.end() ? nullptr : &*found;
}

bool Host::IsOurs(const std::string& uuid) const {
  if (has_ended_.contains(uuid)) return true;
  const DomainInfo* listed = FindListed(uuid);
  return listed != nullptr && !listed->metadata.empty();
}

std::string Host::NameOf(const std::string& uuid) const {
  const DomainInfo* listed = FindListed(uuid);
  return listed == nullptr ? uuid : listed->name;
}

Task<> Host::ResumePaused() {
  if (!IsFull()) co_return;
  PoolSpace space = co_await Use().Space();
  std::uint64_t enough = std::uint64_t(config_.min_free_disk) * kGibibyte + kRoomToContinue;
  if (space.available < enough) co_return;
  for (const std::string& uuid : paused_.LackingRoom()) {
    Outcome<> resumed = co_await Attempt(Use().ResumeDomain(uuid));
    if (FailedWith(resumed, Verdict::kRetry)) co_return;
    if (resumed) {
      logger_.Info("Machine {} on host {} continues: the storage pool has room again", NameOf(uuid), name());
    } else {
      logger_.Warning("Machine {} on host {} cannot continue: {}", NameOf(uuid), name(),
                      resumed.error().message());
    }
    paused_.Remove(uuid);
  }
  listener_.HostChanged(*this);
}

// Once for each cause.
void Host::Report(std::optional<Error> fault) {
  bool is_same = fault_.has_value() == fault.has_value() && (!fault || fault_->message() == fault->message());
  fault_ = std::move(fault);
  if (is_same) return;
  if (fault_) {
    logger_.Warning("Host {} cannot be used, and is tried again: {}", name(), fault_->message());
  } else {
    logger_.Info("Host {} is connected: {} cores, {:.0f} MiB of memory, machines run {} KVM", name(),
                 size_.cores, size_.memory, uses_kvm() ? "with" : "without");
  }
  changed_fault_.NotifyAll();
  listener_.HostMeasured(*this);
  listener_.HostChanged(*this);
}

}  // namespace nodepool::drivers::libvirt
