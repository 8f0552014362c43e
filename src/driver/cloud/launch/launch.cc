#include "driver/cloud/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/cloud/launch/node_record.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/provider_parts.h"
#include "driver/cloud/quota/quota_cache.h"
#include "driver/driver.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kConsoleLimit = std::chrono::seconds(30);
constexpr std::size_t kConsoleLineLimit = 400;
constexpr Backoff::Settings kPauses{std::chrono::seconds(1), std::chrono::seconds(30)};
// With the pauses between them, they take one to two minutes.
constexpr int kMaxDoubts = 8;

std::shared_ptr<const LabelConfig> FindLabel(const PoolConfig& pool, const Node& record) {
  auto found = record.type.empty() ? pool.labels.end() : pool.labels.find(record.type.front());
  return found == pool.labels.end() ? nullptr : found->second;
}

std::string_view TypeOf(std::string_view key) { return key.substr(0, key.find(' ')); }

// Whether the scanned host keys agree with the cloud's: they have at least one type in common, and equal keys
// of each common type. If either list is empty, there is nothing to compare.
bool Agree(const std::vector<std::string>& known, const std::vector<std::string>& scanned) {
  bool has_same = known.empty() || scanned.empty();
  for (const std::string& key : scanned) {
    auto same_type = [&key](const std::string& other) { return TypeOf(other) == TypeOf(key); };
    bool is_known = std::ranges::find(known, key) != known.end();
    if (!is_known && std::ranges::any_of(known, same_type)) return false;
    has_same |= is_known;
  }
  return has_same;
}

bool IsSsh(const Node& record) {
  return record.connection_type == "ssh" || record.connection_type == "network_cli";
}

bool IsOfKind(const Failure& failure, LaunchError::Kind kind) {
  try {
    failure.Rethrow();
  } catch (const LaunchError& fault) {
    return fault.kind() == kind;
  } catch (...) {
    return false;
  }
}

bool LacksCapacity(const Failure& failure) { return IsOfKind(failure, LaunchError::Kind::kCapacity); }

// To the next candidate.
bool MayLeadOn(const Failure& failure) {
  return LacksCapacity(failure) || IsOfKind(failure, LaunchError::Kind::kCandidate);
}

std::string KindName(LaunchError::Kind kind) {
  switch (kind) {
    case LaunchError::Kind::kCandidate:
      break;
    case LaunchError::Kind::kCapacity:
      return "error.capacity";
    case LaunchError::Kind::kStatus:
      return "error.status";
    case LaunchError::Kind::kNetwork:
      return "error.network";
  }
  return "error.unknown";
}

}  // namespace

Launch::Launch(ProviderParts& context, std::shared_ptr<const PoolConfig> pool, store::StoredRequest request,
               std::optional<std::string> az, store::LockedNode& node)
    : context_(context),
      pool_(std::move(pool)),
      label_(FindLabel(*pool_, node.record())),
      request_(std::move(request)),
      az_(std::move(az)),
      node_(node),
      logger_(log::Logger("nodepool.StateMachineNodeLauncher." + context.config->name.value)
                  .About({request_.record.event_id.value_or(""), request_.id.str(), node.id().str()})) {}

Task<> Launch::Run() {
  started_ = attempt_started_ = context_.loop().SteadyNow();
  auto report = [this](const Failure& failure) { return ReportLostSession(failure.verdict()); };
  co_await OnFailure(RunAttempts(), report);
}

Task<> Launch::RunAttempts() {
  Backoff pauses(kPauses, context_.environment.random);
  const int attempts = std::max(1, context_.config->launch_retries);
  while (true) {
    // While the cloud is away no attempt begins: an outage is to cost none (drivers.md 5.4).
    co_await AwaitProvider();
    step_ = Step::kPrepare;
    Outcome<bool> ended = co_await Attempt(AttemptInTime());
    if (ended && *ended) co_return Report(OutcomeOf("ready"));

    Failure failure = ended ? Failure(Error(Verdict::kTimedOut, "the launch timed out")) : ended.error();
    if (!IsOwnFault(failure)) {
      co_await AwaitReturn(failure.message());
      co_await context_.loop().SleepFor(pauses.Next());
      continue;
    }
    Verdict verdict = failure.verdict();
    LaunchOutcome outcome = OutcomeOf(ended ? "error.servercreatetimeout" : ResultOf(failure), failure);
    Report(outcome);
    // The cloud has refused what seemed to fit: what was read of its quota is out of date.
    if (verdict == Verdict::kQuota) context_.quota.Invalidate();
    bool is_final = IsFinal(failure) || attempt_ >= attempts || !IsWorthAnotherAttempt(outcome);
    logger_.Warning("Launch attempt {} of {} in provider {} failed{}: {}", attempt_, attempts,
                    context_.config->name, is_final ? "" : "; the next one follows", failure.message());
    // While the machine exists: the next attempt, or the deletion of the node, removes it.
    if (step_ == Step::kScan && !IsFinal(failure)) co_await DiagnoseFailedScan();
    if (is_final) Fail(failure);
    ++attempt_;
    last_refusal_ = verdict == Verdict::kInvalid ? WithoutRequestIds(failure.message()) : "";
    co_await context_.loop().SleepFor(pauses.Next());
    // The pause does not count for launch-timeout.
    attempt_started_ = context_.loop().SteadyNow();
  }
}

// What the cloud lacks now is refused, not wrong: another pool may have it, or this one later.
void Launch::Fail(const Failure& failure) const {
  if (!LacksCapacity(failure)) failure.Rethrow();
  throw Refusal(Refusal::Kind::kCapacity, failure.message());
}

// An outage says nothing about the launch, unless nobody else sees it (drivers.md 3). A key scan is no call
// of the cloud.
bool Launch::IsOwnFault(const Failure& failure) const {
  return step_ == Step::kScan || is_record_lost_ || !IsOutage(failure.verdict()) || doubts_ >= kMaxDoubts;
}

Task<> Launch::AwaitReturn(std::string cause) {
  logger_.Info("An outage of provider {} interrupts the launch, which goes on when it is over: {}",
               context_.config->name, cause);
  const int outages = context_.quota.outages();
  context_.quota.Doubt(std::move(cause));
  co_await AwaitProvider();
  doubts_ = context_.quota.outages() == outages ? doubts_ + 1 : 0;
}

Task<> Launch::AwaitProvider() {
  if (!context_.quota.is_away()) co_return;
  SteadyTime deadline = attempt_started_ + context_.config->launch_timeout;
  bool is_back =
      co_await EndsBy(context_.loop(), deadline, "the provider's return", context_.quota.WaitUntilBack());
  if (is_back) co_return;
  Report(OutcomeOf("error.servercreatetimeout"));
  throw Error(Verdict::kTimedOut,
              fmt::format("provider {} was away until launch-timeout was over", context_.config->name));
}

bool Launch::IsFinal(const Failure& failure) const {
  Verdict verdict = failure.verdict();
  if (verdict == Verdict::kQuota || verdict == Verdict::kLostSession || is_record_lost_) return true;
  if (step_ == Step::kScan || verdict != Verdict::kInvalid) return false;
  // A failed preparation would fail again. A first refusal may come from what the adapter has cached of the
  // cloud; the same refusal a second time does not (D-26).
  return step_ == Step::kPrepare || WithoutRequestIds(failure.message()) == last_refusal_;
}

Task<bool> Launch::AttemptInTime() {
  SteadyTime deadline = context_.loop().SteadyNow() + context_.config->launch_timeout;
  return EndsBy(context_.loop(), deadline, "the launch", AttemptOnce());
}

Task<> Launch::AttemptOnce() {
  if (label_ == nullptr) {
    throw Error(Verdict::kInvalid, "pool " + pool_->name.str() + " no longer has this label");
  }
  Instance instance = co_await CreateAnywhere();
  co_await Finish(std::move(instance));
}

Task<Instance> Launch::CreateAnywhere() {
  Loop& loop = context_.loop();
  CandidateChoice choice(context_.adapter->Candidates(*label_, *pool_), context_.shortages, loop.SteadyNow());
  while (true) {
    step_ = Step::kPrepare;
    // Of the attempt before, or of the candidate that lacked capacity.
    co_await DeletePreviousMachine();
    std::optional<std::string> image = co_await Prepare();
    step_ = Step::kCreate;
    choice_ = choice.Explain(loop.SteadyNow(), loop.Now());
    Task<Instance> creation = Create(std::move(image), choice.index());
    Outcome<Instance> created = co_await Attempt(std::move(creation));
    if (created) {
      if (!choice.name().empty()) {
        logger_.Info("The machine is {}{}", choice.name(), choice.Why(loop.SteadyNow()));
        ReportCandidate(choice.name(), true);
        choice.Created();
      }
      co_return std::move(*created);
    }
    if (!MayLeadOn(created.error())) created.error().Rethrow();
    const std::string refused = choice.name();
    if (!refused.empty()) ReportCandidate(refused, false);
    if (!choice.MoveOn(loop.SteadyNow())) created.error().Rethrow();
    logger_.Info("Provider {} makes no {} now; the launch tries {}: {}", context_.config->name, refused,
                 choice.name(), created.error().message());
  }
}

// Two machines of one node never live at the same time (D-92).
Task<> Launch::DeletePreviousMachine() {
  boost::json::value id = node_.record().external_id;
  if (id.is_null()) co_return;
  Backoff pauses(kPauses, context_.environment.random);
  while (true) {
    Progress machine(logger_, attempt_, pool_);
    Outcome<> deleted = co_await Attempt(EnsureGone(context_.adapter->Delete(machine, id)));
    if (deleted) co_return;
    logger_.Warning("The machine of the failed attempt could not be deleted yet: {}",
                    deleted.error().message());
    if (IsOutage(deleted.error().verdict())) {
      context_.quota.Doubt(deleted.error().message());
      co_await context_.quota.WaitUntilBack();
    }
    co_await context_.loop().SleepFor(pauses.Next());
  }
}

// Writes nothing if the record was created with these fields.
Task<std::optional<std::string>> Launch::Prepare() {
  Node wanted = node_.record();
  std::optional<std::string> image = FillBeforeLaunch(context_, *label_, request_.record, wanted);
  auto change = [&wanted](Node& record) {
    bool is_same = record.external_id.is_null() && record.image_id == wanted.image_id &&
                   record.resources == wanted.resources && record.username == wanted.username &&
                   record.connection_type == wanted.connection_type &&
                   record.connection_port == wanted.connection_port &&
                   record.python_path == wanted.python_path && record.shell_type == wanted.shell_type;
    if (is_same || record.state != NodeState::kBuilding) return store::Change::kSkip;
    record.external_id = nullptr;
    record.image_id = wanted.image_id;
    record.resources = wanted.resources;
    record.username = wanted.username;
    record.connection_type = wanted.connection_type;
    record.connection_port = wanted.connection_port;
    record.python_path = wanted.python_path;
    record.shell_type = wanted.shell_type;
    return store::Change::kWrite;
  };
  co_await Write(change);
  co_return image;
}

Task<Instance> Launch::Create(std::optional<std::string> image_external_id, std::size_t candidate) {
  CreateParameters parameters;
  parameters.hostname = "np" + node_.id().str();
  parameters.label = label_;
  parameters.pool = pool_;
  parameters.image_external_id = std::move(image_external_id);
  parameters.metadata = MetadataOf(node_.id(), pool_->name, context_.config->name);
  parameters.attempt_mark = context_.environment.random.UuidHex();
  parameters.request_id = request_.id;
  parameters.request = request_.record;
  parameters.az = az_;
  parameters.candidate = candidate;
  Progress machine(logger_, attempt_, pool_,
                   [this](boost::json::value id) { return StoreExternalId(std::move(id)); });
  Instance instance = co_await context_.adapter->Create(machine, std::move(parameters));
  CheckInstance(instance);
  co_return instance;
}

Task<> Launch::StoreExternalId(boost::json::value id) {
  auto change = [&id](Node& record) {
    if (record.state != NodeState::kBuilding || record.external_id == id) return store::Change::kSkip;
    record.external_id = id;
    return store::Change::kWrite;
  };
  co_await Write(change);
}

Task<> Launch::Finish(Instance instance) {
  bool is_ready = !WantsScan(instance);
  machine_type_ = instance.machine_type;
  auto fill = [this, &instance, is_ready](Node& record) {
    if (record.state != NodeState::kBuilding) return store::Change::kSkip;
    FillFromInstance(instance, *pool_, record);
    // A comment of another kind is its author's, and stays.
    bool is_others = record.comment && !IsLaunchComment(*record.comment);
    std::string comment = LaunchComment(instance, choice_);
    if (!is_others && !comment.empty()) record.comment = std::move(comment);
    if (is_ready) record.SetState(NodeState::kReady, context_.loop().Now());
    return store::Change::kWrite;
  };
  // Before the scan, which takes the address from the record.
  co_await Write(fill);
  if (is_ready) co_return;

  step_ = Step::kScan;
  Duration limit = instance.boot_timeout.value_or(context_.config->boot_timeout);
  std::vector<std::string> keys = co_await Scan(limit);
  // Another machine may answer at this address.
  if (!Agree(instance.host_keys.value_or(std::vector<std::string>()), keys)) {
    throw Error(Verdict::kFail,
                "the host keys at the machine's address are not those that the cloud has of it");
  }
  auto finish = [this, &keys](Node& record) {
    if (record.state != NodeState::kBuilding) return store::Change::kSkip;
    if (!keys.empty()) record.host_keys = keys;
    record.SetState(NodeState::kReady, context_.loop().Now());
    return store::Change::kWrite;
  };
  co_await Write(finish);
}

bool Launch::WantsScan(const Instance& instance) const {
  bool has_port = !instance.connection.connection_port || !instance.connection.connection_port->is_object();
  return context_.scan && label_->host_key_checking && has_port;
}

Task<std::vector<std::string>> Launch::Scan(Duration limit) {
  const Node& record = node_.record();
  std::string host = record.interface_ip.value_or("");
  if (host.empty()) {
    throw Error(Verdict::kFail, "the machine has no address at which its host keys could be read");
  }
  int port = static_cast<int>(record.connection_port.integer().value_or(22));
  SteadyTime deadline = context_.loop().SteadyNow() + limit;
  std::vector<std::string> keys = co_await context_.scan(std::move(host), port, IsSsh(record), deadline);
  co_return keys;
}

Task<> Launch::DiagnoseFailedScan() {
  const boost::json::value id = node_.record().external_id;
  context_.adapter->NotifyNodescanFailure(*label_, id);
  SteadyTime limit = context_.loop().SteadyNow() + kConsoleLimit;
  Task<std::optional<std::string>> reading = context_.adapter->ConsoleLog(*label_, id);
  Outcome<std::optional<std::string>> read =
      co_await Attempt(WithDeadline(context_.loop(), limit, "reading the console", std::move(reading)));
  if (!read) logger_.Warning("The console of the machine could not be read: {}", read.error().message());
  const std::optional<std::string> console = read ? std::move(*read) : std::nullopt;
  if (!console) co_return;
  logger_.Info("Console of the machine whose host keys could not be read:");
  for (const std::string& line : Split(*console, '\n')) logger_.Info("{}", Excerpt(line, kConsoleLineLimit));
}

Task<> Launch::Write(std::function<store::Change(Node&)> change) {
  co_await Uninterrupted(WriteNow(std::move(change)));
}

Task<> Launch::WriteNow(std::function<store::Change(Node&)> change) {
  Outcome<bool> written = co_await Attempt(node_.Update(std::move(change)));
  is_record_lost_ = written ? !*written && node_.record().state != NodeState::kBuilding
                            : FailedWith(written, Verdict::kNotFound);
  if (!written) written.error().Rethrow();
  if (is_record_lost_)
    throw Error(Verdict::kConflict, "the record of the node was changed while it was being launched");
}

std::string Launch::ResultOf(const Failure& failure) const {
  try {
    failure.Rethrow();
  } catch (const LaunchError& fault) {
    return KindName(fault.kind());
  } catch (...) {
  }
  Verdict verdict = failure.verdict();
  if (verdict == Verdict::kQuota) return "error.quota";
  if (verdict == Verdict::kLostSession) return "error.zksession";
  if (step_ == Step::kScan) return "error.keyscan";
  if (step_ == Step::kPrepare) return "error.nodepool";
  return "error.unknown";
}

Task<> Launch::ReportLostSession(Verdict verdict) {
  if (verdict == Verdict::kCancelled && !node_.is_held()) Report(OutcomeOf("error.zksession"));
  co_return;
}

void Launch::ReportCandidate(const std::string& candidate, bool is_created) {
  if (context_.environment.observer == nullptr) return;
  context_.environment.observer->CandidateTried({context_.config->name, candidate, is_created});
}

std::optional<FailureKind> Launch::KindOfFailure(const Failure& failure) const {
  Verdict verdict = failure.verdict();
  if (is_record_lost_ || verdict == Verdict::kLostSession || verdict == Verdict::kCancelled)
    return std::nullopt;
  return step_ == Step::kScan ? FailureKind::kKeyScan : KindOf(failure);
}

void Launch::Report(const LaunchOutcome& outcome) {
  if (context_.environment.observer != nullptr) context_.environment.observer->LaunchAttemptEnded(outcome);
}

bool Launch::IsWorthAnotherAttempt(const LaunchOutcome& failed) const {
  ProviderObserver* observer = context_.environment.observer;
  return observer == nullptr || observer->IsWorthAnotherAttempt(failed);
}

LaunchOutcome Launch::OutcomeOf(std::string result, const Failure& failure) const {
  LaunchOutcome outcome = OutcomeOf(std::move(result));
  outcome.failure = KindOfFailure(failure);
  outcome.said = failure.message();
  return outcome;
}

LaunchOutcome Launch::OutcomeOf(std::string result) const {
  LaunchOutcome outcome;
  outcome.provider = context_.config->name;
  outcome.node = node_.id();
  outcome.request = request_.id;
  outcome.az = node_.record().az;
  outcome.requestor = request_.record.requestor;
  outcome.result = std::move(result);
  outcome.machine_type = machine_type_;
  outcome.duration = context_.loop().SteadyNow() - started_;
  outcome.begun = attempt_started_;
  outcome.pool = pool_->name;
  if (label_ != nullptr) outcome.label = label_->name;
  return outcome;
}

}  // namespace nodepool::driver::cloud
