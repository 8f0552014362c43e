#include "launcher/breakers/breakers.h"

#include <algorithm>
#include <utility>

#include "async/task.h"
#include "base/text.h"
#include "model/image.h"

namespace nodepool::launcher {

SharedBreakers::SharedBreakers(Loop& loop, store::Store& store, store::RecordCache<Breaker>& cache)
    : store_(store), cache_(cache), logger_("nodepool.Breakers"), tasks_(loop, logger_) {}

SharedBreakers::~SharedBreakers() = default;

const Breaker* SharedBreakers::Find(const BreakerKey& key) const {
  auto pending = pending_.find(key);
  if (pending == pending_.end()) return cache_.Find(key);
  return pending->second.record ? &*pending->second.record : nullptr;
}

bool SharedBreakers::AreAnyOf(const ProviderName& provider) const {
  auto has_any = [&](const auto& breakers) {
    if (breakers.empty()) return false;  // as almost always; each label of each pool asks
    auto first = breakers.lower_bound(BreakerKey{provider});
    return first != breakers.end() && first->first.provider == provider;
  };
  return has_any(pending_) || has_any(cache_.all());
}

void SharedBreakers::Update(const BreakerKey& key, store::Breakers::Change change) {
  const Breaker* now = Find(key);
  std::optional<Breaker> after = change(now == nullptr ? std::nullopt : std::optional(*now));
  Pending& pending = pending_[key];
  pending.record = std::move(after);
  pending.changes.push_back(std::move(change));
  if (std::exchange(pending.is_writing, true)) return;
  std::shared_ptr<void> ended(nullptr, [this, key](void*) { Ended(key); });
  tasks_.Spawn("write breaker", Write(key, std::move(ended)));
}

Task<> SharedBreakers::Write(BreakerKey key, std::shared_ptr<void> /*ended*/) {
  Outcome<> written = co_await Attempt(WriteAll(key));
  if (!written && !FailedWith(written, Verdict::kLostSession)) {
    logger_.Error("The breaker of {} could not be written: {}", ToString(key), written.error().message());
  }
}

// Until the cache shows what was written, it shows the record as it was.
Task<> SharedBreakers::WriteAll(BreakerKey key) {
  while (!pending_.at(key).changes.empty()) {
    auto changes = std::exchange(pending_.at(key).changes, {});
    store::Breakers::Change all = [changes](std::optional<Breaker> now) {
      for (const store::Breakers::Change& change : changes) now = change(std::move(now));
      return now;
    };
    co_await store_.breakers.Update(key, std::move(all));
    co_await cache_.CatchUp();
  }
}

void SharedBreakers::Ended(const BreakerKey& key) {
  pending_.erase(key);
  written_.Notify(key);
}

namespace {

// A record that nobody has probed for so long after it could be is of a provider that nobody has any more.
constexpr Duration kAbandoned = std::chrono::hours(24);
// Whether the launcher that probes is still there is checked so often.
constexpr Duration kRecheck = std::chrono::seconds(30);
constexpr Duration kAbandonedCheck = std::chrono::hours(1);

Duration Until(const std::optional<WallTime>& when, WallTime now) {
  return when ? std::max(Duration(0), Duration(*when - now)) : Duration(0);
}

std::string Seconds(Duration duration) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Breakers::Breakers(Loop& loop, Random& random, store::Store& store, store::RecordCache<Breaker>& cache,
                   Launcher launcher)
    : loop_(loop),
      random_(random),
      launcher_(std::move(launcher)),
      logger_("nodepool.Breakers"),
      shared_(loop, store, cache),
      store_requests_(store.requests),
      withdrawing_(loop, random, logger_,
                   {[](const RequestId& id) {
                      return fmt::format("Request {} for a probe cannot be withdrawn yet", id);
                    },
                    [](const RequestId& id) { return log::OfRequest(id); }},
                   [this](const RequestId& id) -> std::optional<Reconciler<RequestId>::Work> {
                     if (!unwanted_.contains(id)) return std::nullopt;
                     return Reconciler<RequestId>::Work{"withdraw a probe", Withdraw(id)};
                   }),
      tasks_(loop, logger_),
      alarm_(loop, [this] { ClaimDueProbes(); }) {}

Breakers::~Breakers() = default;

void Breakers::Start(std::function<void()> changed) {
  changed_ = std::move(changed);
  for (const auto& [key, breaker] : shared_.all()) Seen(key, nullptr, &breaker);
  subscriptions_.push_back(shared_.OnChange([this](const BreakerKey& key, const Breaker* before,
                                                   const Breaker* after) { Seen(key, before, after); }));
  subscriptions_.push_back(shared_.OnWritten([this](const BreakerKey&) {
    SetAlarm();
    changed_();
  }));
  Reconfigured();
}

Task<> Breakers::Stop() {
  subscriptions_.clear();
  alarm_.Cancel();
  co_await tasks_.Stop();
  co_await withdrawing_.Stop();
  co_await shared_.Stop();
}

// Our requests end with the session.
void Breakers::SessionLost() {
  tasks_.CancelAll();
  withdrawing_.CancelAll();
  requested_.clear();
  unwanted_.clear();
  shared_.SessionLost();
}

void Breakers::Reconfigured() {
  std::vector<BreakerKey> leftover;
  for (const auto& [key, breaker] : shared_.all()) {
    const BreakerSettings* settings = launcher_.settings_of(key.provider);
    if (settings != nullptr && (!settings->is_on || !launcher_.is_configured(key))) leftover.push_back(key);
  }
  for (const BreakerKey& key : leftover) Close(key);
  auto is_gone = [this](const auto& entry) { return !launcher_.is_configured(entry.first); };
  std::erase_if(attempts_, is_gone);
  std::erase_if(former_, is_gone);
}

std::optional<BreakerKey> Breakers::WidestOpen(const PoolKey& pool, const LabelName& label) const {
  if (!shared_.AreAnyOf(pool.provider)) return std::nullopt;
  const BreakerSettings* settings = launcher_.settings_of(pool.provider);
  if (settings != nullptr && !settings->is_on) return std::nullopt;
  for (BreakerKey& key : BreakerKeysOf(pool, label)) {
    if (shared_.Find(key) != nullptr) return std::move(key);
  }
  return std::nullopt;
}

bool Breakers::AreAnyOpen(const ProviderName& provider) const { return shared_.AreAnyOf(provider); }

// A claim counts once it is written: another launcher may have been faster.
sched::OpenBreaker Breakers::ViewOf(const BreakerKey& key, const Breaker& breaker) const {
  auto stored = shared_.all().find(key);
  bool is_written = stored != shared_.all().end() && stored->second.prober == launcher_.id();
  return {.is_own_probe = is_written && breaker.prober == launcher_.id(), .is_taken = probes_.contains(key)};
}

sched::Standing Breakers::StandingOf(const PoolKey& pool, const LabelName& label) const {
  std::optional<BreakerKey> key = WidestOpen(pool, label);
  if (!key) return sched::Standing::kClosed;
  return sched::StandingOf(ViewOf(*key, *shared_.Find(*key)));
}

void Breakers::AttemptEnded(const driver::LaunchOutcome& outcome) {
  const BreakerSettings* settings = launcher_.settings_of(outcome.provider);
  // An upload that is only validated says nothing about what others boot.
  bool is_evidence = (outcome.failure || outcome.result == "ready") && !outcome.label.empty() &&
                     !IsValidationLabel(outcome.label);
  if (settings == nullptr || !settings->is_on || !is_evidence) return;
  for (const BreakerKey& key : BreakerKeysOf({outcome.provider, outcome.pool}, outcome.label))
    Count(key, outcome, *settings);
}

void Breakers::Count(const BreakerKey& key, const driver::LaunchOutcome& outcome,
                     const BreakerSettings& settings) {
  SteadyTime now = loop_.SteadyNow();
  attempts_[key].Add({now, outcome.pool, outcome.label, outcome.failure, outcome.said});
  if (shared_.Find(key) == nullptr) {
    if (!outcome.failure) return;
    std::optional<Breaker> evidence = sched::Judge(key, attempts_[key], settings, now);
    if (evidence) Open(key, std::move(*evidence), settings);
    return;
  }
  // What began before proves nothing about what is true since.
  auto opened = opened_.find(key);
  bool is_later = opened != opened_.end() && outcome.begun >= opened->second;
  auto probe = probes_.find(key);
  if (!outcome.failure && is_later) {
    Succeeded(key, outcome.request);
  } else if (outcome.failure && probe != probes_.end() && outcome.begun >= probe->second.begun) {
    ProbeFailed(key, outcome, settings);
  }
}

void Breakers::Open(const BreakerKey& key, Breaker evidence, const BreakerSettings& settings) {
  auto former = former_.find(key);
  bool is_relapse = former != former_.end() && loop_.SteadyNow() - former->second.closed < settings.window;
  if (is_relapse) {
    evidence.failed_probes = former->second.failed_probes + 1;
    evidence.relapses = former->second.relapses + 1;
  }
  Duration pause = sched::ProbePause(settings, evidence.failed_probes, random_.Between(0, 1));
  evidence.opened = loop_.Now();
  evidence.next_probe = loop_.Now() + pause;
  evidence.opened_by = launcher_.id();
  opened_[key] = loop_.SteadyNow();
  shared_.Update(key, [evidence](std::optional<Breaker> now) { return now ? now : std::optional(evidence); });
  changed_();
}

void Breakers::Close(const BreakerKey& key) {
  attempts_.erase(key);
  shared_.Update(key, [](const std::optional<Breaker>&) { return std::optional<Breaker>(); });
  changed_();
}

// Until there are enough in a row, the same launcher goes on to probe.
void Breakers::Succeeded(const BreakerKey& key, const RequestId& request) {
  // The node of a request for the probe becomes free by itself; after a launch for others nobody needs it.
  auto requested = requested_.find(key);
  if (requested != requested_.end() && requested->second.id == request) {
    requested_.erase(requested);
  } else {
    WithdrawProbe(key);
  }
  const Breaker& breaker = *shared_.Find(key);
  if (breaker.good_probes + 1 >= sched::SuccessesToClose(breaker)) return Close(key);
  probes_.erase(key);
  shared_.Update(key, [](std::optional<Breaker> now) {
    if (now) ++now->good_probes;
    return now;
  });
  changed_();
}

void Breakers::ProbeFailed(const BreakerKey& key, const driver::LaunchOutcome& outcome,
                           const BreakerSettings& settings) {
  probes_.erase(key);
  const std::int64_t failed = shared_.Find(key)->failed_probes + 1;
  WallTime next = loop_.Now() + sched::ProbePause(settings, failed, random_.Between(0, 1));
  std::string said = Excerpt(outcome.said, sched::RecentAttempts::kMostSaid);
  auto fail = [self = launcher_.id(), failed, next, said](std::optional<Breaker> now) {
    if (!now || now->prober != self) return now;
    now->prober.clear();
    now->good_probes = 0;
    now->failed_probes = failed;
    now->next_probe = next;
    now->said = said;
    return now;
  };
  shared_.Update(key, fail);
  changed_();
}

bool Breakers::IsAnyOursToProbe() const {
  return std::ranges::any_of(shared_.all(), [this](const auto& entry) {
    return entry.second.prober == launcher_.id() && !requested_.contains(entry.first);
  });
}

bool Breakers::IsWorthAnotherAttempt(const driver::LaunchOutcome& failed) const {
  const PoolKey pool{failed.provider, failed.pool};
  if (!WidestOpen(pool, failed.label)) return true;
  return !IsForProbe(failed.request) && !launcher_.is_left(pool, failed.request);
}

void Breakers::ProbeWanted(const PoolKey& pool, const std::vector<LabelName>& labels) {
  for (const LabelName& label : labels) {
    std::optional<BreakerKey> key = WidestOpen(pool, label);
    if (!key || requested_.contains(*key)) continue;
    if (sched::StandingOf(ViewOf(*key, *shared_.Find(*key))) != sched::Standing::kMayProbe) continue;
    requested_.emplace(*key, ProbeRequest{++last_number_, std::nullopt});
    tasks_.Spawn("request a probe", RequestProbe(std::move(*key), label, last_number_));
  }
}

// The node is made free as those of min-ready are.
Task<> Breakers::RequestProbe(BreakerKey key, LabelName label, std::uint64_t number) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, loop_.Now());
  request.node_types = {label};
  request.reuse = false;
  request.requestor = std::string(kMinReadyRequestor);
  request.provider = key.provider;
  Outcome<RequestId> id =
      co_await Attempt(store_requests_.Create(std::string(kMinReadyPrecedence), std::move(request), true));
  auto requested = requested_.find(key);
  bool is_wanted = requested != requested_.end() && requested->second.number == number;
  if (!id) {
    logger_.Warning("No node could be requested to probe the breaker of {}: {}", ToString(key),
                    id.error().message());
    if (is_wanted) requested_.erase(requested);
    co_return;
  }
  if (!is_wanted) co_return WithdrawRequest(*id);
  requested->second.id = *id;
}

bool Breakers::IsForProbe(const RequestId& request) const {
  return std::ranges::any_of(requested_, [&](const auto& entry) { return entry.second.id == request; });
}

void Breakers::WithdrawProbe(const BreakerKey& key) {
  auto requested = requested_.extract(key);
  if (!requested.empty() && requested.mapped().id) WithdrawRequest(*requested.mapped().id);
}

void Breakers::WithdrawRequest(const RequestId& id) {
  unwanted_.insert(id);
  withdrawing_.Notice(id);
}

// As clients cancel theirs, without its lock: this launcher may be about to take it. One that was decided
// meanwhile is deleted as well, which does no harm: its node becomes free.
Task<> Breakers::Withdraw(RequestId id) {
  std::optional<store::StoredRequest> found = co_await store_requests_.Read(id);
  bool is_open = found && (found->record.state == RequestState::kRequested ||
                           found->record.state == RequestState::kPending);
  if (is_open) co_await store_requests_.Delete(id);
  unwanted_.erase(id);
}

void Breakers::RequestAccepted(const RequestId& request, const PoolKey& pool,
                               const std::vector<LabelName>& labels, sched::Standing standing) {
  std::set<BreakerKey> keys;
  for (const LabelName& label : labels) {
    if (std::optional<BreakerKey> key = WidestOpen(pool, label)) keys.insert(std::move(*key));
  }
  for (const BreakerKey& key : keys) {
    if (standing == sched::Standing::kMayProbe) {
      probes_[key] = {request, loop_.SteadyNow()};
      continue;
    }
    logger_.About(log::OfRequest(request))
        .Info("The breaker of {} is open, but no other pool can serve the request: it is tried",
              ToString(key));
    shared_.Update(key, [](std::optional<Breaker> now) {
      if (now) ++now->tried_anyway;
      return now;
    });
  }
}

void Breakers::RequestEnded(const RequestId& request) {
  std::size_t count =
      std::erase_if(probes_, [&](const auto& probe) { return probe.second.request == request; });
  // The entry stays until the next check, so that what cannot be launched now is not tried again at once.
  if (IsForProbe(request)) WithdrawRequest(request);
  if (count > 0) changed_();
}

SteadyTime Breakers::PauseEnd(const BreakerKey& key, const Breaker& breaker) const {
  // The clocks of hosts differ, but no pause is longer than the longest.
  const BreakerSettings* settings = launcher_.settings_of(key.provider);
  Duration longest = settings == nullptr ? kAbandoned : 2 * settings->probe_max;
  return loop_.SteadyNow() + std::min(Until(breaker.next_probe, loop_.Now()), longest);
}

void Breakers::Seen(const BreakerKey& key, const Breaker* before, const Breaker* after) {
  Log(key, before, after);
  if (after == nullptr) {
    attempts_.erase(key);
    if (launcher_.is_configured(key))
      former_[key] = {loop_.SteadyNow(), before->failed_probes, before->relapses};
    opened_.erase(key);
    prober_since_.erase(key);
    SetDue(key, std::nullopt);
    probes_.erase(key);
    WithdrawProbe(key);
  } else {
    opened_.emplace(key, loop_.SteadyNow());
    bool is_other_prober = before == nullptr || before->prober != after->prober;
    if (is_other_prober) prober_since_[key] = loop_.SteadyNow();
    bool is_new_pause = before == nullptr || before->next_probe != after->next_probe;
    if (is_new_pause) SetDue(key, PauseEnd(key, *after));
    if (after->prober != launcher_.id()) {
      probes_.erase(key);
      WithdrawProbe(key);
    }
  }
  SetAlarm();
  changed_();
}

void Breakers::Log(const BreakerKey& key, const Breaker* before, const Breaker* after) const {
  const std::string what = ToString(key);
  if (after == nullptr) return logger_.Info("The breaker of {} is closed", what);
  std::string next = Seconds(Until(after->next_probe, loop_.Now()));
  if (before == nullptr) {
    logger_.Warning(
        "The breaker of {} is open: {}. Other pools get the requests that they can serve; a launch is tried "
        "in {}",
        what, EvidenceOf(*after), next);
  } else if (after->failed_probes > before->failed_probes) {
    logger_.Warning(
        "The breaker of {} stays open, since a launch was tried and failed; the next one is tried in {}: {}",
        what, next, Excerpt(after->said.value_or(""), sched::RecentAttempts::kMostSaid));
  } else if (!after->prober.empty() && before->prober.empty()) {
    logger_.Info("The breaker of {} is half-open: one launch is tried", what);
  } else if (after->good_probes > before->good_probes) {
    logger_.Info("The breaker of {} stays half-open: {} of {} launches in a row have succeeded", what,
                 after->good_probes, sched::SuccessesToClose(*after));
  }
}

void Breakers::ClaimDueProbes() {
  SteadyTime now = loop_.SteadyNow();
  while (!due_order_.empty() && due_order_.begin()->first <= now) {
    const BreakerKey key = due_order_.begin()->second;
    bool is_ours = launcher_.settings_of(key.provider) != nullptr;
    SetDue(key, now + (is_ours ? kRecheck : kAbandonedCheck));
    if (const Breaker* breaker = shared_.Find(key)) Check(key, *breaker);
  }
  SetAlarm();
}

// The records of other launchers' providers are only watched for being abandoned.
void Breakers::Check(const BreakerKey& key, const Breaker& breaker) {
  if (const BreakerSettings* settings = launcher_.settings_of(key.provider)) {
    sched::Prober prober{.is_self = breaker.prober == launcher_.id(),
                         .is_alive = launcher_.is_alive(breaker.prober)};
    if (auto since = prober_since_.find(key); since != prober_since_.end())
      prober.since = loop_.SteadyNow() - since->second;
    if (sched::IsProbeDue(breaker, prober, *settings)) Claim(key, breaker.prober);
    bool comes_to_nothing = requested_.contains(key) && !probes_.contains(key);
    if (comes_to_nothing) {
      WithdrawProbe(key);
      changed_();
    }
  } else if (loop_.Now() - breaker.next_probe.value_or(loop_.Now()) >= kAbandoned) {
    Close(key);
  }
}

void Breakers::Claim(const BreakerKey& key, const std::string& former) {
  auto claim = [self = launcher_.id(), former](std::optional<Breaker> now) {
    if (now && now->prober == former) now->prober = self;
    return now;
  };
  shared_.Update(key, claim);
}

void Breakers::SetDue(const BreakerKey& key, std::optional<SteadyTime> when) {
  if (auto known = due_.extract(key); !known.empty()) due_order_.erase({known.mapped(), key});
  if (!when) return;
  due_.emplace(key, *when);
  due_order_.emplace(*when, key);
}

void Breakers::SetAlarm() { due_order_.empty() ? alarm_.Cancel() : alarm_.SetFor(due_order_.begin()->first); }

}  // namespace nodepool::launcher
