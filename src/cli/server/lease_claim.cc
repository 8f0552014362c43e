#include "cli/server/lease_claim.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/deadline.h"

namespace nodepool::cli {
namespace {

constexpr Duration kLongestPoll = std::chrono::seconds(30);
// A server at which too many wait answers at once.
constexpr Duration kShortestPoll = std::chrono::seconds(2);
// A lease is renewed when this part of it has passed.
constexpr int kRenewalsPerLease = 3;
constexpr Backoff::Settings kPauses{.initial = std::chrono::milliseconds(250),
                                    .max = std::chrono::seconds(10)};

// Whether the server cannot have seen the call, or has refused it.
bool IsWithoutEffect(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    return !error.may_have_been_seen();
  } catch (const Error& error) {
    return error.verdict() == Verdict::kFail || error.verdict() == Verdict::kConflict;
  } catch (...) {
    return false;
  }
}

long long WholeSeconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

}  // namespace

LeaseClaim::LeaseClaim(Console& console, LeaseClient& client, NodeWish wish, LeaseTimes times)
    : console_(console),
      client_(client),
      wish_(std::move(wish)),
      times_(times),
      key_(console.random.UuidHex()) {}

Task<LeaseView> LeaseClaim::Make() {
  bool might_exist = std::exchange(may_exist_, true);
  Task<LeaseView> make = client_.Make(wish_, times_.lease, key_);
  Outcome<LeaseView> made = co_await Attempt(std::move(make));
  if (!made) {
    if (IsWithoutEffect(made.error())) may_exist_ = might_exist;
    made.error().Rethrow();
  }
  co_return std::move(*made);
}

Task<LeaseView> LeaseClaim::Poll() {
  return client_.Show(seen_.id, std::min(kLongestPoll, seen_.lasts / kRenewalsPerLease));
}
Task<LeaseView> LeaseClaim::Renew() { return client_.Renew(seen_.id); }

// A token that is refused for a while does not end what has begun.
bool LeaseClaim::IsFinal(Verdict verdict) const {
  if (!nodes_.empty()) return verdict == Verdict::kNotFound || verdict == Verdict::kConflict;
  return verdict != Verdict::kRetry && verdict != Verdict::kTimedOut;
}

Task<LeaseView> LeaseClaim::Insist(Call call, SteadyTime deadline) {
  Backoff pauses(kPauses, console_.random);
  bool is_away = false;
  while (true) {
    SteadyTime sent = console_.loop.SteadyNow();
    Task<LeaseView> once = WithDeadline(console_.loop, deadline, "an answer of the server", (this->*call)());
    Outcome<LeaseView> answer = co_await Attempt(std::move(once));
    if (answer) {
      if (is_away) console_.logger.Info("{} answers again", client_.server());
      seen_ = *answer;
      renewed_ = sent;
      co_return std::move(*answer);
    }
    SteadyTime now = console_.loop.SteadyNow();
    if (IsFinal(answer.error().verdict()) || now >= deadline) answer.error().Rethrow();
    if (!is_away) {
      console_.logger.Warning("{}; it is asked again for {} s", answer.error().message(),
                              WholeSeconds(deadline - now));
    }
    is_away = true;
    SteadyTime next = std::min(now + pauses.Next(), deadline);
    co_await console_.loop.SleepUntil(next);
    if (next == deadline) answer.error().Rethrow();
  }
}

Task<> LeaseClaim::Obtain() {
  SteadyTime first_deadline = console_.loop.SteadyNow() + times_.first_answer;
  LeaseView view = co_await Insist(&LeaseClaim::Make, first_deadline);
  console_.logger.Info("Request {} made; waiting for its nodes", view.id);
  while (view.state == LeaseState::kWaiting) {
    SteadyTime next = console_.loop.SteadyNow() + kShortestPoll;
    view = co_await Insist(&LeaseClaim::Poll, renewed_ + view.lasts);
    if (view.state == LeaseState::kWaiting) co_await console_.loop.SleepUntil(next);
  }
  if (view.state == LeaseState::kFailed)
    throw Error(Verdict::kFail, fmt::format("Request {} failed: {}", view.id, view.failure));
  if (view.state == LeaseState::kEnding)
    throw Error(Verdict::kNotFound, fmt::format("Request {} was ended before it was served", view.id));
  if (view.nodes.size() != wish_.labels.size())
    throw Error(Verdict::kConflict, fmt::format("A node of request {} was taken away", view.id));
  nodes_ = std::move(view.nodes);
}

Task<> LeaseClaim::Keep(SteadyTime end) {
  while (!nodes_.empty()) {
    SteadyTime next = std::min(end, renewed_ + seen_.lasts / kRenewalsPerLease);
    co_await console_.loop.SleepUntil(next);
    if (console_.loop.SteadyNow() >= end) co_return;
    Task<LeaseView> renew = Insist(&LeaseClaim::Renew, renewed_ + seen_.lasts);
    Outcome<LeaseView> renewed = co_await Attempt(std::move(renew));
    if (!renewed) {
      nodes_.clear();
      throw Error(Verdict::kLostSession, fmt::format("The lease of request {} ended, and with it the claim "
                                                     "to the nodes: {}",
                                                     seen_.id, renewed.error().message()));
    }
    DropNodesBut(renewed->nodes);
  }
}

void LeaseClaim::DropNodesBut(const std::vector<ClaimedNode>& kept) {
  std::erase_if(nodes_, [&](const ClaimedNode& node) {
    bool is_kept = std::ranges::find(kept, node.id, &ClaimedNode::id) != kept.end();
    if (!is_kept) console_.logger.Warning("Node {} was taken away while it was in use", node.id);
    return !is_kept;
  });
}

// The answer that names the lease may have been lost: then the same request is sent once more.
Task<> LeaseClaim::GiveBackOnce() {
  if (seen_.id.empty()) {
    Task<LeaseView> make = client_.Make(wish_, times_.lease, key_);
    seen_ = co_await std::move(make);
  }
  Task<> end = client_.End(seen_.id);
  co_await std::move(end);
  may_exist_ = false;
}

Task<> LeaseClaim::GiveBack() {
  Backoff pauses(kPauses, console_.random);
  while (true) {
    Outcome<> given = co_await Attempt(GiveBackOnce());
    if (given) co_return;
    if (!FailedWith(given, Verdict::kRetry)) given.error().Rethrow();
    Duration pause = pauses.Next();
    co_await console_.loop.SleepFor(pause);
  }
}

Task<> LeaseClaim::End() {
  if (!may_exist_) co_return;
  SteadyTime deadline = console_.loop.SteadyNow() + kGiveBackTimeout;
  Task<> give_back = WithDeadline(console_.loop, deadline, "giving the nodes back", GiveBack());
  Outcome<> given = co_await Attempt(std::move(give_back));
  if (given) co_return;
  console_.logger.Warning("{}; the server gives the nodes back when the lease ends, in {} s at most",
                          given.error().message(), WholeSeconds(times_.lease));
}

std::string LeaseClaim::Progress() const {
  if (seen_.id.empty()) return "asking";
  if (seen_.ready) return BootingText(*seen_.ready, wish_.labels.size());
  return WaitingText("waiting", seen_.why);
}

std::string LeaseClaim::WhyWaiting() const { return nodes_.empty() ? seen_.why : ""; }

// The poll under way says nothing before its end.
Task<> LeaseClaim::AskForProgress() {
  if (seen_.id.empty()) co_return;
  Task<LeaseView> show = client_.Show(seen_.id, Duration::zero());
  Outcome<LeaseView> shown = co_await Attempt(std::move(show));
  if (!shown) co_return;
  seen_.ready = shown->ready;
  seen_.why = shown->why;
}

}  // namespace nodepool::cli
