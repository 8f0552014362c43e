#pragma once

#include <fmt/format.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/error.h"
#include "drivers/libvirt/config/libvirt_config.h"

namespace nodepool::drivers::libvirt {

// The way from other threads to the loop, for threads that may live longer than it: what comes after Close()
// is dropped.
class LoopPort {
 public:
  explicit LoopPort(Loop& loop) : executor_(loop.executor()) {}

  // From any thread: runs `function` later on the loop.
  void Post(std::move_only_function<void()> function) {
    std::lock_guard lock(mutex_);
    if (is_open_) boost::asio::post(executor_, std::move(function));
  }
  // From the loop's thread.
  void Close() {
    std::lock_guard lock(mutex_);
    is_open_ = false;
  }

 private:
  boost::asio::any_io_executor executor_;
  std::mutex mutex_;
  bool is_open_ = true;
};

// The threads on which one host's calls block. Unlike those of BlockingPool they are abandoned when a call
// does not return: the caller's deadline ends its wait, and the process ends without them.
class CallThreads {
 public:
  // Threads are started with the first call. `loop` outlives this object.
  CallThreads(Loop& loop, std::size_t threads);
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  // Runs `work` on a thread and returns its result or throws its Error. `work` must not touch what lives on
  // the loop, and may be carried out although the caller was cancelled. Error(kRetry): it has not returned
  // within `limit`; until it has, further calls are refused. `what` says in messages what is done.
  template <class Work, class Result = std::invoke_result_t<Work>>
  Task<Result> Run(std::string what, Duration limit, Work work);

  // As Run, without waiting for the end.
  void Post(std::move_only_function<void()> work);

  // What a call does that has not returned in time; nullopt: there is none.
  std::optional<std::string> Overdue() const;
  // Ends when no call is under way, at the latest at `deadline`.
  Task<> Drain(SteadyTime deadline);

 private:
  template <class Result>
  using ValueOf = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;

  struct Threads;
  struct Call {
    std::string what;
    SteadyTime deadline;
  };

  template <class Work>
  static Expected<ValueOf<std::invoke_result_t<Work>>> Result(Work& work);
  void Ended(std::list<Call>::iterator call);

  Loop& loop_;
  std::shared_ptr<LoopPort> port_;
  std::shared_ptr<Threads> threads_;
  std::list<Call> calls_;  // under way
  WaitList ended_;
};

template <class Work>
Expected<CallThreads::ValueOf<std::invoke_result_t<Work>>> CallThreads::Result(Work& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      work();
      return std::monostate();
    } else {
      return work();
    }
  } catch (const Error& error) {
    return std::unexpected(error);
  } catch (const std::exception& error) {
    return Unexpected(Verdict::kFail, error.what());
  }
}

template <class Work, class Result>
Task<Result> CallThreads::Run(std::string what, Duration limit, Work work) {
  if (std::optional<std::string> overdue = Overdue()) {
    throw Error(Verdict::kRetry, fmt::format("the host does not answer: {} has not ended", *overdue));
  }
  using Value = ValueOf<Result>;
  auto answer = std::make_shared<OneShot<Expected<Value>>>();
  SteadyTime deadline = loop_.SteadyNow() + limit;
  auto call = calls_.insert(calls_.end(), Call{what, deadline});
  // The answer is delivered on the loop, where this object still exists: its destructor closes the port.
  auto run = [this, call, port = port_, waiting = std::weak_ptr(answer), work = std::move(work)]() mutable {
    auto result = std::make_shared<Expected<Value>>(CallThreads::Result(work));
    port->Post([this, call, waiting, result] {
      Ended(call);
      if (auto answer = waiting.lock()) answer->Set(std::move(*result));
    });
  };
  Post(std::move(run));
  Task<Expected<Value>> wait = WithDeadline(loop_, deadline, what, answer->Take());
  Outcome<Expected<Value>> outcome = co_await Attempt(std::move(wait));
  if (FailedWith(outcome, Verdict::kTimedOut)) {
    throw Error(Verdict::kRetry, fmt::format("the host has not answered in time: {}", what));
  }
  if (!outcome) outcome.error().Rethrow();
  if (!*outcome) throw outcome->error();
  if constexpr (!std::is_void_v<Result>) co_return std::move(**outcome);
}

// libvirt's objects, freed when they go.
template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using DomainHandle = std::unique_ptr<virDomain, Free<virDomainFree>>;
using NetworkHandle = std::unique_ptr<virNetwork, Free<virNetworkFree>>;
using PoolHandle = std::unique_ptr<virStoragePool, Free<virStoragePoolFree>>;
using VolumeHandle = std::unique_ptr<virStorageVol, Free<virStorageVolFree>>;
using StreamHandle = std::unique_ptr<virStream, Free<virStreamFree>>;
using InterfaceHandle = std::unique_ptr<virDomainInterface, Free<virDomainInterfaceFree>>;
using LeaseHandle = std::unique_ptr<virNetworkDHCPLease, Free<virNetworkDHCPLeaseFree>>;
// A text, or a list of objects, that libvirt has allocated.
template <class T>
using Allocated = std::unique_ptr<T, Free<::free>>;

// An open connection to a host's libvirt, and its storage pool. Everything here blocks and is called on the
// host's threads, also the destructor. May be used by several threads at a time.
class Connection {
 public:
  // Called on other threads.
  struct Events {
    std::function<void(std::string why)> lost;
    std::function<void(std::string uuid)> domain_started;
    std::function<void(std::string uuid)> domain_ended;
    // A machine is paused, since a disk of it could not be written; libvirt's word for why, or "".
    std::function<void(std::string uuid, std::string reason)> domain_paused;
  };

  // Opens the connection and sees that pool and network, which machines need, exist and run; makes them if
  // configured so. kRetry: the host cannot be reached. kInvalid: something has to be mended there.
  static std::shared_ptr<Connection> Open(const HostConfig& host, Events events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Why it cannot be used any more, as far as is known without a call; nullopt: it can.
  std::optional<std::string> Fault() const;
  // After a call that failed: notes where the storage pool is not active any more.
  void CheckPool() const;
  virConnectPtr get() const { return connection_; }
  virStoragePoolPtr pool() const { return pool_.get(); }
  // kNotFound: there is none.
  VolumeHandle FindVolume(const std::string& name) const;

 private:
  explicit Connection(virConnectPtr connection) : connection_(connection) {}
  void Follow(Events events);
  void Register(int event, virConnectDomainEventGenericCallback callback, const Events& events);

  virConnectPtr connection_;
  std::unique_ptr<Events> for_end_;
  PoolHandle pool_;
  std::string pool_name_;
  mutable std::atomic<bool> has_lost_pool_ = false;
  std::vector<int> registrations_;  // of events
};

// libvirt's answer as our error, with libvirt's own words (driver-libvirt.md 17). `what` says what was tried.
Error FaultOf(const std::string& what, int code, const std::string& message);

// Of the calling thread's last call; to be read at once after it.
Error LastFault(const std::string& what);
int LastCode();

// The storage pool, started; made first where the host has none of the name and `pool` has a path. Blocks.
// kInvalid: there is none and none can be made.
PoolHandle OpenPool(virConnectPtr connection, const StoragePool& pool);

// Makes and starts `made` where the host has no such network, and sees that the network runs. Blocks.
// kInvalid: it does not exist, or does not run, and is not to be made.
void OpenNetwork(virConnectPtr connection, const std::string& name, const std::optional<NewNetwork>& made);

}  // namespace nodepool::drivers::libvirt
