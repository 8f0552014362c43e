#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/task.h"
#include "base/log/logging.h"
#include "driver/cloud/provider_parts.h"
#include "driver/provider_environment.h"
#include "store/locked_records.h"

namespace nodepool::driver::cloud {

// One node on its way to `ready`, over as many attempts as the provider allows; an outage of the cloud is
// waited for, and is none of them (drivers.md 5.4). What a watcher of the record sees, in this order: image
// fields, external_id, addresses, `ready` with host keys.
//
// What a crash leaves behind: before external_id is stored, a machine that leak
// cleanup finds by its metadata; after it, a record in `building` without a lock,
// whose deletion removes the machine.
class Launch {
 public:
  // `node` is locked and outlives the launch.
  Launch(ProviderParts& context, std::shared_ptr<const PoolConfig> pool, store::StoredRequest request,
         std::optional<std::string> az, store::LockedNode& node);

  // As NodeRequestHandler::Launch.
  Task<> Run();

 private:
  // The step at which an attempt failed decides what follows.
  enum class Step { kPrepare, kCreate, kScan };

  Task<> RunAttempts();
  // One attempt; returns false when the launch timed out.
  Task<bool> AttemptInTime();
  Task<> AttemptOnce();
  Task<> DeletePreviousMachine();
  Task<std::optional<std::string>> Prepare();
  // Creates the machine, of the first candidate for which the cloud has capacity.
  Task<Instance> CreateAnywhere();
  Task<Instance> Create(std::optional<std::string> image_external_id, std::size_t candidate);
  Task<> Finish(Instance instance);
  Task<std::vector<std::string>> Scan(Duration limit);
  Task<> DiagnoseFailedScan();

  // Ends when the provider can be used; throws if it is away for too long.
  Task<> AwaitProvider();
  // After an outage: has the provider probed.
  Task<> AwaitReturn(std::string cause);

  bool WantsScan(const Instance& instance) const;
  bool IsOwnFault(const Failure& failure) const;
  bool IsFinal(const Failure& failure) const;
  [[noreturn]] void Fail(const Failure& failure) const;
  std::string ResultOf(const Failure& failure) const;
  std::optional<FailureKind> KindOfFailure(const Failure& failure) const;
  void Report(const LaunchOutcome& outcome);
  bool IsWorthAnotherAttempt(const LaunchOutcome& failed) const;
  LaunchOutcome OutcomeOf(std::string result) const;
  LaunchOutcome OutcomeOf(std::string result, const Failure& failure) const;
  void ReportCandidate(const std::string& candidate, bool is_created);
  // A launch whose session is lost is cancelled as well.
  Task<> ReportLostSession(Verdict verdict);

  // Completes the write of the record even if the launch is cancelled meanwhile.
  // kConflict when the node is not `building` any more.
  Task<> Write(std::function<store::Change(Node&)> change);
  Task<> WriteNow(std::function<store::Change(Node&)> change);
  Task<> StoreExternalId(boost::json::value id);

  ProviderParts& context_;
  std::shared_ptr<const PoolConfig> pool_;
  std::shared_ptr<const LabelConfig> label_;
  store::StoredRequest request_;
  std::optional<std::string> az_;
  store::LockedNode& node_;
  log::Logger logger_;

  int attempt_ = 1;
  int doubts_ = 0;  // outages in a row during which everybody else was answered
  Step step_ = Step::kPrepare;
  bool is_record_lost_ = false;  // the record is gone, or its state was changed by another client
  std::string last_refusal_;     // of the previous attempt, if it ended with kInvalid
  SteadyTime started_{};
  SteadyTime attempt_started_{};
  std::string choice_;        // the candidate that is created, and why; empty: there are none
  std::string machine_type_;  // of the machine that was created
};

}  // namespace nodepool::driver::cloud
