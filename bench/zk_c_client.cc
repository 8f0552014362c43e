#include "bench/zk_c_client.h"

#define THREADED
#include <zookeeper/zookeeper.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>

namespace nodepool::bench {

// The C client answers on a thread of its own; this is the only lock.
struct CClient::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_connected = false;
  int under_way = 0;
  int failed = 0;
  zhandle_t* handle = nullptr;

  static void OnEvent(zhandle_t*, int, int state, const char*, void* context) {
    auto* self = static_cast<Impl*>(context);
    std::lock_guard lock(self->mutex);
    self->is_connected = state == ZOO_CONNECTED_STATE;
    self->changed.notify_all();
  }
  void Done(int code) {
    std::lock_guard lock(mutex);
    if (code != ZOK) ++failed;
    --under_way;
    changed.notify_one();
  }
  static void OnCreated(int code, const char*, const void* context) { Self(context)->Done(code); }
  static void OnSet(int code, const Stat*, const void* context) { Self(context)->Done(code); }
  static void OnData(int code, const char*, int, const Stat*, const void* context) {
    Self(context)->Done(code);
  }
  static Impl* Self(const void* context) { return static_cast<Impl*>(const_cast<void*>(context)); }

  // Waits until another operation may be sent.
  void Admit(int window) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return under_way < window; });
    ++under_way;
  }
  void WaitForAll() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return under_way == 0; });
    if (failed > 0) throw std::runtime_error("operations of the C client failed");
  }
};

CClient::CClient(const std::string& address) : impl_(std::make_unique<Impl>()) {
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  impl_->handle = zookeeper_init(address.c_str(), &Impl::OnEvent, 30'000, nullptr, impl_.get(), 0);
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->is_connected; });
}

CClient::~CClient() { zookeeper_close(impl_->handle); }

void CClient::CreateAll(const std::string& root, int count, int window, const std::string& data) {
  for (int i = 0; i < count; ++i) {
    impl_->Admit(window);
    std::string path = root + "/" + std::to_string(i);
    zoo_acreate(impl_->handle, path.c_str(), data.data(), static_cast<int>(data.size()), &ZOO_OPEN_ACL_UNSAFE,
                0, &Impl::OnCreated, impl_.get());
  }
  impl_->WaitForAll();
}

void CClient::SetAll(const std::string& root, int count, int window, const std::string& data) {
  for (int i = 0; i < count; ++i) {
    impl_->Admit(window);
    std::string path = root + "/" + std::to_string(i);
    zoo_aset(impl_->handle, path.c_str(), data.data(), static_cast<int>(data.size()), -1, &Impl::OnSet,
             impl_.get());
  }
  impl_->WaitForAll();
}

void CClient::GetAll(const std::string& root, int count, int window) {
  for (int i = 0; i < count; ++i) {
    impl_->Admit(window);
    std::string path = root + "/" + std::to_string(i);
    zoo_aget(impl_->handle, path.c_str(), 0, &Impl::OnData, impl_.get());
  }
  impl_->WaitForAll();
}

}  // namespace nodepool::bench
