#include "drivers/libvirt/host/connection.h"

#include <fmt/format.h>
#include <libvirt/virterror.h>

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
  bool has_ended = event == VIR_DOMAIN_EVENT_STOPPED || event == VIR_DOMAIN_EVENT_CRASHED;
  char uuid[VIR_UUID_STRING_BUFLEN] = "";
  if (has_ended && virDomainGetUUIDString(domain, uuid) == 0) {
    static_cast<Connection::Events*>(events)->domain_ended(uuid);
  }
  return 0;
}

void DeleteEvents(void* events) { delete static_cast<Connection::Events*>(events); }

}  // namespace

std::shared_ptr<Connection> Connection::Open(const HostConfig& host, Events events) {
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
  if (host.network.kind == MachineNetwork::Kind::kNamed) {
    OpenNetwork(opened, host.network.name, host.new_network);
  }
  return connection;
}

Connection::~Connection() {
  pool_.reset();
  if (domain_events_ >= 0) virConnectDomainEventDeregisterAny(connection_, domain_events_);
  virConnectUnregisterCloseCallback(connection_, &ReportLost);
  virConnectClose(connection_);
}

// A driver that has no events, such as test:///, refuses; then the lists show what has happened.
void Connection::Follow(Events events) {
  // Ours, since such a driver takes it without an error and never deletes it. Unregistering waits for a call.
  for_end_ = std::make_unique<Events>(events);
  virConnectRegisterCloseCallback(connection_, &ReportLost, for_end_.get(), nullptr);
  auto* for_domains = new Events(std::move(events));
  int id =
      virConnectDomainEventRegisterAny(connection_, nullptr, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                       VIR_DOMAIN_EVENT_CALLBACK(&ReportDomain), for_domains, &DeleteEvents);
  if (id < 0) DeleteEvents(for_domains);
  domain_events_ = id;
}

VolumeHandle Connection::FindVolume(const std::string& name) const {
  VolumeHandle volume(virStorageVolLookupByName(pool(), name.c_str()));
  if (!volume) throw LastFault(fmt::format("finding volume {}", name));
  return volume;
}

}  // namespace nodepool::drivers::libvirt
