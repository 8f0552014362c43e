#include "drivers/libvirt/host/event_thread.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace nodepool::drivers::libvirt {

namespace {

constexpr auto kPauseAfterEventFault = std::chrono::seconds(1);

void Ignore(void*, virErrorPtr) {}

void RunEvents() {
  while (true) {
    if (virEventRunDefaultImpl() < 0) std::this_thread::sleep_for(kPauseAfterEventFault);
  }
}

}  // namespace

void StartEventThread() {
  static std::once_flag once;
  std::call_once(once, [] {
    virInitialize();
    virSetErrorFunc(nullptr, &Ignore);
    virEventRegisterDefaultImpl();
    std::thread(RunEvents).detach();
  });
}

}  // namespace nodepool::drivers::libvirt
