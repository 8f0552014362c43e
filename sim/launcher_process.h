#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "launcher/launcher.h"
#include "sim/inspector.h"
#include "sim/mortal_zk.h"
#include "sim/stepper.h"
#include "zk/grouping_client.h"

namespace nodepool::sim {

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
  MortalZk& zk() { return zk_; }
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
  MortalZk zk_;
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
