#include "drivers/libvirt/host/connection.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>
#include <unistd.h>

#include "drivers/libvirt/config/host_uri.h"
#include "drivers/libvirt/host/event_thread.h"
#include "drivers/libvirt/host/faults.h"
#include "drivers/libvirt/host/networks.h"
#include "drivers/libvirt/host/pools.h"

namespace nodepool::drivers::libvirt {

namespace {

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
  Register(VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(&ReportDomain), events);
  Register(VIR_DOMAIN_EVENT_ID_IO_ERROR_REASON, VIR_DOMAIN_EVENT_CALLBACK(&ReportDiskFault), events);
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

}  // namespace nodepool::drivers::libvirt
