#include "drivers/libvirt/host/connection.h"

#include <fmt/format.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

// Shared with its threads, which outlive their owner while they are in a call.
struct CallThreads::Threads {
  explicit Threads(std::size_t wanted) : unstarted(wanted) {}

  void Serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_stopping || !queue.empty(); });
      if (queue.empty()) return;
      std::move_only_function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::move_only_function<void()>> queue;
  std::size_t unstarted;
  bool is_stopping = false;
};

CallThreads::CallThreads(Loop& loop, std::size_t threads)
    : loop_(loop), port_(std::make_shared<LoopPort>(loop)), threads_(std::make_shared<Threads>(threads)) {}

CallThreads::~CallThreads() {
  port_->Close();
  std::lock_guard lock(threads_->mutex);
  threads_->is_stopping = true;
  threads_->changed.notify_all();
}

void CallThreads::Post(std::move_only_function<void()> work) {
  std::lock_guard lock(threads_->mutex);
  threads_->queue.push_back(std::move(work));
  threads_->changed.notify_one();
  if (threads_->unstarted == 0) return;
  --threads_->unstarted;
  std::thread([threads = threads_] { threads->Serve(); }).detach();
}

std::optional<std::string> CallThreads::Overdue() const {
  auto is_overdue = [now = loop_.SteadyNow()](const Call& call) { return call.deadline < now; };
  auto overdue = std::ranges::find_if(calls_, is_overdue);
  return overdue == calls_.end() ? std::nullopt : std::optional(overdue->what);
}

Task<> CallThreads::Drain(SteadyTime deadline) {
  while (!calls_.empty()) {
    bool has_changed = co_await EndsBy(loop_, deadline, "calls of a host", ended_.Wait());
    if (!has_changed) co_return;
  }
}

void CallThreads::Ended(std::list<Call>::iterator call) {
  calls_.erase(call);
  ended_.NotifyAll();
}

namespace {

constexpr auto kPauseAfterEventFault = std::chrono::seconds(1);

void Ignore(void*, virErrorPtr) {}

void RunEvents() {
  while (true) {
    if (virEventRunDefaultImpl() < 0) std::this_thread::sleep_for(kPauseAfterEventFault);
  }
}

// Starts the thread that runs libvirt's event loop, once in a process, and keeps libvirt from printing
// errors. To be called before a connection is opened; from any thread. Keep-alive and events work only with
// it. The thread runs as long as the process: libvirt's loop cannot be taken down while connections exist.
void StartEventThread() {
  static std::once_flag once;
  std::call_once(once, [] {
    virInitialize();
    virSetErrorFunc(nullptr, &Ignore);
    virEventRegisterDefaultImpl();
    std::thread(RunEvents).detach();
  });
}

constexpr int kKeepAliveInterval = 5;  // seconds
constexpr unsigned kKeepAliveMisses = 3;

// There is nobody who could answer a prompt.
int RefuseToAnswer(virConnectCredentialPtr, unsigned, void*) { return -1; }

const char* WhyClosed(int reason) {
  switch (reason) {
    case VIR_CONNECT_CLOSE_REASON_EOF:
      return "libvirtd has closed the connection";
    case VIR_CONNECT_CLOSE_REASON_KEEPALIVE:
      return "libvirtd does not answer keep-alive messages";
    default:
      return "the connection broke";
  }
}

void ReportLost(virConnectPtr, int reason, void* events) {
  static_cast<Connection::Events*>(events)->lost(WhyClosed(reason));
}

int ReportDomain(virConnectPtr, virDomainPtr domain, int event, int, void* events) {
  auto& report = *static_cast<Connection::Events*>(events);
  bool has_ended = event == VIR_DOMAIN_EVENT_STOPPED || event == VIR_DOMAIN_EVENT_CRASHED;
  char uuid[VIR_UUID_STRING_BUFLEN] = "";
  if (virDomainGetUUIDString(domain, uuid) != 0) return 0;
  if (event == VIR_DOMAIN_EVENT_STARTED) report.domain_started(uuid);
  if (has_ended) report.domain_ended(uuid);
  return 0;
}

void ReportDiskFault(virConnectPtr, virDomainPtr domain, const char*, const char*, int action,
                     const char* reason, void* events) {
  char uuid[VIR_UUID_STRING_BUFLEN] = "";
  bool is_paused = action == VIR_DOMAIN_EVENT_IO_ERROR_PAUSE;
  if (!is_paused || virDomainGetUUIDString(domain, uuid) != 0) return;
  static_cast<Connection::Events*>(events)->domain_paused(uuid, reason == nullptr ? "" : reason);
}

void DeleteEvents(void* events) { delete static_cast<Connection::Events*>(events); }

// As VIR_DOMAIN_EVENT_CALLBACK, but by way of the type that compilers take for any function.
template <class Callback>
virConnectDomainEventGenericCallback AnyCallback(Callback* callback) {
  return reinterpret_cast<virConnectDomainEventGenericCallback>(reinterpret_cast<void (*)()>(callback));
}

}  // namespace

std::shared_ptr<Connection> Connection::Open(const HostConfig& host, Events events) {
  CheckRights(host.uri, geteuid() == 0);
  StartEventThread();
  virConnectAuth auth{nullptr, 0, &RefuseToAnswer, nullptr};
  virConnectPtr opened = virConnectOpenAuth(host.uri.c_str(), &auth, 0);
  if (opened == nullptr) {
    Error fault = LastFault("connecting to libvirt");
    // Whatever libvirt calls it: a host that cannot be reached may be reached later.
    Verdict verdict = fault.verdict() == Verdict::kInvalid ? Verdict::kInvalid : Verdict::kRetry;
    throw Error(verdict, fault.message());
  }
  std::shared_ptr<Connection> connection(new Connection(opened));
  // Drivers without a daemon, such as test:///, have no need of it.
  virConnectSetKeepAlive(opened, kKeepAliveInterval, kKeepAliveMisses);
  connection->Follow(std::move(events));
  connection->pool_ = OpenPool(opened, host.storage_pool);
  connection->pool_name_ = host.storage_pool.name;
  if (host.network.kind == MachineNetwork::Kind::kNamed) {
    OpenNetwork(opened, host.network.name, host.new_network);
  }
  return connection;
}

std::optional<std::string> Connection::Fault() const {
  if (virConnectIsAlive(connection_) != 1) return "the connection broke";
  if (has_lost_pool_) return fmt::format("storage pool {} is not active any more", pool_name_);
  return std::nullopt;
}

void Connection::CheckPool() const {
  if (virStoragePoolIsActive(pool()) != 1) has_lost_pool_ = true;
}

Connection::~Connection() {
  pool_.reset();
  for (int registration : registrations_) virConnectDomainEventDeregisterAny(connection_, registration);
  virConnectUnregisterCloseCallback(connection_, &ReportLost);
  virConnectClose(connection_);
}

// A driver that has no events, such as test:///, refuses; then the lists show what has happened.
void Connection::Follow(Events events) {
  // Ours, since such a driver takes it without an error and never deletes it. Unregistering waits for a call.
  for_end_ = std::make_unique<Events>(events);
  virConnectRegisterCloseCallback(connection_, &ReportLost, for_end_.get(), nullptr);
  Register(VIR_DOMAIN_EVENT_ID_LIFECYCLE, AnyCallback(&ReportDomain), events);
  Register(VIR_DOMAIN_EVENT_ID_IO_ERROR_REASON, AnyCallback(&ReportDiskFault), events);
}

void Connection::Register(int event, virConnectDomainEventGenericCallback callback, const Events& events) {
  auto* copy = new Events(events);
  int id = virConnectDomainEventRegisterAny(connection_, nullptr, event, callback, copy, &DeleteEvents);
  if (id < 0) {
    DeleteEvents(copy);
  } else {
    registrations_.push_back(id);
  }
}

VolumeHandle Connection::FindVolume(const std::string& name) const {
  VolumeHandle volume(virStorageVolLookupByName(pool(), name.c_str()));
  if (!volume) throw LastFault(fmt::format("finding volume {}", name));
  return volume;
}

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

namespace {

PoolHandle FindPool(virConnectPtr connection, const std::string& name) {
  return PoolHandle(virStoragePoolLookupByName(connection, name.c_str()));
}

// Null: it could not be defined, perhaps since another connection has made it meanwhile.
PoolHandle DefinePool(virConnectPtr connection, const StoragePool& pool) {
  PoolHandle made(virStoragePoolDefineXML(connection, PoolXml(pool.name, *pool.path).c_str(), 0));
  if (!made) return made;
  std::string what = fmt::format("making storage pool {} in {}", pool.name, *pool.path);
  if (virStoragePoolBuild(made.get(), 0) < 0 || virStoragePoolSetAutostart(made.get(), 1) < 0) {
    Error fault = LastFault(what);
    virStoragePoolUndefine(made.get());
    throw fault;
  }
  return made;
}

}  // namespace

PoolHandle OpenPool(virConnectPtr connection, const StoragePool& pool) {
  std::string what = fmt::format("opening storage pool {}", pool.name);
  PoolHandle opened = FindPool(connection, pool.name);
  bool is_missing = !opened && LastCode() == VIR_ERR_NO_STORAGE_POOL;
  if (is_missing && pool.path) opened = DefinePool(connection, pool);
  if (!opened) {
    Error fault = LastFault(what);
    opened = FindPool(connection, pool.name);
    if (!opened) throw fault;
  }
  if (virStoragePoolIsActive(opened.get()) == 1 || virStoragePoolCreate(opened.get(), 0) == 0) return opened;
  Error fault = LastFault(what);
  if (virStoragePoolIsActive(opened.get()) != 1) throw fault;
  return opened;
}

namespace {

NetworkHandle FindNetwork(virConnectPtr connection, const std::string& name) {
  return NetworkHandle(virNetworkLookupByName(connection, name.c_str()));
}

bool IsActive(const NetworkHandle& network) { return virNetworkIsActive(network.get()) == 1; }

// Null: it could not be defined, perhaps since another connection has made it meanwhile.
NetworkHandle DefineNetwork(virConnectPtr connection, const NewNetwork& network) {
  NetworkHandle made(virNetworkDefineXML(connection, NetworkXml(network).c_str()));
  if (made && virNetworkSetAutostart(made.get(), 1) < 0) throw LastFault("making network " + network.name);
  return made;
}

void StartNetwork(const NetworkHandle& network, const std::string& what) {
  if (virNetworkCreate(network.get()) == 0) return;
  Error fault = LastFault(what);
  if (!IsActive(network)) throw fault;
}

}  // namespace

void OpenNetwork(virConnectPtr connection, const std::string& name, const std::optional<NewNetwork>& made) {
  std::string what = fmt::format("finding network {}", name);
  NetworkHandle network = FindNetwork(connection, name);
  bool is_missing = !network && LastCode() == VIR_ERR_NO_NETWORK;
  if (is_missing && made) network = DefineNetwork(connection, *made);
  if (!network) {
    Error fault = LastFault(what);
    network = FindNetwork(connection, name);
    if (!network) throw fault;
  }
  if (IsActive(network)) return;
  if (made) return StartNetwork(network, fmt::format("starting network {}", name));
  throw Error(Verdict::kInvalid,
              fmt::format("{}: it is not active; start it with virsh net-start {}", what, name));
}

}  // namespace nodepool::drivers::libvirt
