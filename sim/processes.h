#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/loop.h"
#include "async/task_group.h"
#include "base/testing/manual_clock.h"
#include "builder/context.h"
#include "builder/files/local_files.h"
#include "launcher/launcher.h"
#include "sim/crashable_zk.h"
#include "sim/inspector.h"
#include "store/store.h"
#include "zk/grouping_client.h"

namespace nodepool::sim {

// A loop on a virtual clock, run handler by handler: between two handlers the simulation can be inspected and
// processes can be killed.
class Stepper {
 public:
  Loop& loop() { return loop_; }
  testing::ManualClock& clock() { return clock_; }
  SteadyTime now() const { return clock_.SteadyNow(); }
  // Handlers run so far.
  std::uint64_t steps() const { return steps_; }

  // Called after every handler.
  void AfterEach(std::function<void()> callback) { after_each_ = std::move(callback); }

  // Runs handlers and lets time pass until `is_reached`, which is checked before each handler, for at most
  // `limit`. Returns whether it was reached.
  template <class Predicate>
  bool RunUntil(Predicate is_reached, Duration limit) {
    SteadyTime end = now() + limit;
    while (!is_reached()) {
      if (!RunOne() && !PassTime(end)) return is_reached();
    }
    return true;
  }
  // Runs all handlers that are ready, without letting time pass.
  void RunReady() {
    while (RunOne()) {
    }
  }

 private:
  bool RunOne();
  // Advances to the next timer, or to `end`; false at `end`.
  bool PassTime(SteadyTime end);

  testing::ManualClock clock_;
  Loop loop_{clock_};
  std::function<void()> after_each_;
  std::uint64_t steps_ = 0;
};

// A process that requests nodes as Zuul does: creates requests, waits, locks the nodes, deletes the request,
// uses the nodes and returns them, according to a plan for each request.
class Consumer {
 public:
  // Counts requests by outcome.
  struct Tally {
    int submitted = 0;
    int fulfilled = 0;
    int failed = 0;
    int withdrawn = 0;  // by the client
  };

  // All arguments outlive this.
  Consumer(Loop& loop, testing::MemoryZk& zk, Random& faults, Inspector& inspector, std::uint64_t seed,
           std::string name, Tally& tally);
  ~Consumer();  // when is_idle(), or after Vanish() and the loop's next run

  // Begins the plan now; the caller chooses the time.
  void Submit(RequestPlan plan);
  // The process dies; its session expires.
  void Vanish(testing::MemoryZk::UnderWay under_way);
  bool is_idle() const { return tasks_.size() == 0; }
  bool is_dead() const { return zk_.is_dead(); }
  Task<> Close() { return zk_.Close(); }

 private:
  Task<> Serve(RequestPlan plan);
  Task<> Reprioritise(RequestId id, Duration after);
  Task<> WithdrawLater(RequestId id, Duration after);
  Task<> AwaitDecision(RequestId id);
  Task<std::vector<store::LockedNode>> Take(RequestId id, NodeRequest request);
  Task<> Use(std::vector<store::LockedNode> nodes, RequestPlan plan);

  Loop& loop_;
  Inspector& inspector_;
  Tally& tally_;
  SeededRandom random_;
  CrashableZk zk_;
  store::Store store_;
  std::shared_ptr<Participant> participant_;
  TaskGroup tasks_;
};

// A process that uploads an image to the clouds again and again and has each upload validated as a builder
// does, before it is ready. While there is trouble, checks fail now and then.
class ImageBuilder {
 public:
  // What all processes share; outlives them.
  struct Environment {
    Loop& loop;
    testing::MemoryZk& zk;
    Random& faults;
    Inspector& inspector;
    Clouds& clouds;
    const Scenario& scenario;
    BlockingPool& blocking_pool;
  };

  ImageBuilder(Environment environment, std::uint64_t seed, std::string name);
  ~ImageBuilder();  // when is_idle(), or after Vanish() and the loop's next run

  // The process dies; its session expires.
  void Vanish(testing::MemoryZk::UnderWay under_way);
  // From now on machines are good, and it ends when each provider has an upload that is ready.
  void CalmDown() { is_calm_ = true; }
  bool is_idle() const { return tasks_.size() == 0; }
  Task<> Close() { return zk_.Close(); }

 private:
  // Runs checks of machines.
  class Checks : public process::Runner {
   public:
    explicit Checks(ImageBuilder& owner) : owner_(owner) {}
    Task<process::Exit> Run(process::Command command) override;

   private:
    ImageBuilder& owner_;
  };

  Task<> Live();
  Task<store::BuildKey> FindBuild();
  Task<> Supply(ProviderName provider);
  Task<bool> HasReady(ProviderName provider);
  Task<> UploadOnce(ProviderName provider);
  Task<> UploadLocked(ProviderName provider, zk::HeldLock lock);
  Task<> RemoveLeft(ProviderName provider);
  Task<> Remove(store::StoredUpload upload);
  Task<> Validate(store::StoredUpload upload);

  Environment environment_;
  SeededRandom random_;
  CrashableZk zk_;
  store::Store store_;
  store::Caches caches_;  // never started
  metrics::Metrics metrics_;
  builder::DirectoryFiles files_;
  Checks checks_{*this};
  builder::Context context_;
  std::shared_ptr<Participant> participant_;
  bool is_calm_ = false;
  store::BuildKey build_;
  TaskGroup tasks_;
};

// One life of a launcher, from its start to a graceful stop or a crash, with its own session. After a crash
// its tasks are ended as well, but nothing that they do reaches the ensemble or a cloud.
class LauncherProcess {
 public:
  // What all processes share; outlives them.
  struct Environment {
    Loop& loop;
    testing::MemoryZk& zk;
    Clouds& clouds;
    Inspector& inspector;
    Random& faults;
    BlockingPool& blocking_pool;
  };

  LauncherProcess(Environment environment, std::uint64_t seed, std::string name,
                  std::shared_ptr<const driver::LoadedConfig> config);
  ~LauncherProcess();  // when is_over(), not from within a handler

  // The process dies now; `under_way` says whether what it has sent to the ensemble arrives.
  void Crash(testing::MemoryZk::UnderWay under_way);
  // The same at a later await: after it has sent `operations` more to the ensemble.
  void CrashAfter(int operations, testing::MemoryZk::UnderWay under_way);
  // As on SIGINT.
  void Stop();
  // Puts another configuration in force, if it serves.
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config);
  void Disconnect(testing::MemoryZk::UnderWay under_way);
  void Reconnect();

  const std::string& name() const { return participant_->name; }
  CrashableZk& zk() { return zk_; }
  bool is_serving() const { return is_started_ && !ending_since_; }
  bool is_ending() const { return ending_since_.has_value(); }
  bool is_dead() const { return zk_.is_dead(); }
  bool is_over() const { return is_over_; }
  // When it was asked to end; requires is_ending().
  SteadyTime ending_since() const { return *ending_since_; }

 private:
  Task<> Live();
  Task<> StartLauncher();
  Task<> SeeAgain();
  void End();

  Environment environment_;
  std::shared_ptr<Participant> participant_;
  SeededRandom random_;
  CrashableZk zk_;
  zk::GroupingClient grouping_zk_;
  driver::Registry drivers_;
  metrics::Metrics metrics_;  // not read
  std::unique_ptr<launcher::Launcher> launcher_;
  TaskGroup tasks_;
  Event end_;
  bool is_started_ = false;
  bool is_over_ = false;
  std::optional<SteadyTime> ending_since_;
};

}  // namespace nodepool::sim
