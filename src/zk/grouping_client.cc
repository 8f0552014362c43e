#include "zk/grouping_client.h"

#include <algorithm>
#include <variant>

#include "base/scope_exit.h"

namespace nodepool::zk {

namespace {

// After so many refusals of its group a write is sent alone.
constexpr int kMostRefusals = 2;
constexpr std::size_t kBytesOfOp = 64;  // beside path and data, about

std::size_t BytesOf(const Op& op) {
  auto size = [](const auto& part) {
    std::size_t bytes = kBytesOfOp + part.path.size();
    if constexpr (requires { part.data; }) bytes += part.data.size();
    return bytes;
  };
  return std::visit(size, op);
}

// One of the transactions' parts of an answer that covers several.
MultiResult PartOf(const MultiResult& whole, std::size_t begin, std::size_t count) {
  MultiResult part;
  auto first = whole.results.begin() + static_cast<std::ptrdiff_t>(begin);
  part.results.assign(first, first + static_cast<std::ptrdiff_t>(count));
  if (!whole.ok()) part.failed = whole.failed - static_cast<int>(begin);
  return part;
}

}  // namespace

// A write that waits for others to end, of one or more operations.
struct GroupingClient::Write {
  std::vector<Op> ops;
  std::size_t bytes = 0;
  std::optional<Session> session;  // in which it was called; none: there was none yet
  int refusals = 0;                // of transactions of which it was a part
  bool is_abandoned = false;       // its caller was cancelled
  // Set when there is something to do: the answer has come, or the group is to be sent by this write's task.
  Event wake{"other writes to ZooKeeper"};
  std::optional<Outcome<MultiResult>> answer;
  Group to_send;  // begins with this one; empty: another write's task sends it

  void Answer(Outcome<MultiResult> outcome) {
    answer.emplace(std::move(outcome));
    wake.Set();
  }
};

GroupingClient::GroupingClient(Client& inner, Bounds bounds) : inner_(inner), bounds_(bounds) {}

Task<Result<Created>> GroupingClient::Create(std::string path, std::string data, CreateMode mode) {
  if (MaySend() || mode != CreateMode::kEphemeralSequential) {
    Result<Created> created = co_await inner_.Create(std::move(path), std::move(data), mode);
    co_return created;
  }
  std::vector<Op> ops;
  ops.emplace_back(CreateOp{std::move(path), std::move(data), mode});
  MultiResult answer = co_await Wait(std::move(ops));
  if (!answer.ok()) co_return std::unexpected(answer.code());
  OpResult& created = answer.results.front();
  co_return Created{std::move(created.path), created.stat};
}

Task<Result<Stat>> GroupingClient::Set(std::string path, std::string data, std::int32_t version) {
  if (MaySend()) {
    ++under_way_;
    ScopeExit ended([this] { WriteEnded(); });
    Result<Stat> stat = co_await inner_.Set(std::move(path), std::move(data), version);
    co_return stat;
  }
  std::vector<Op> ops;
  ops.emplace_back(SetOp{std::move(path), std::move(data), version});
  MultiResult answer = co_await Wait(std::move(ops));
  if (!answer.ok()) co_return std::unexpected(answer.code());
  co_return answer.results.front().stat;
}

Task<Result<>> GroupingClient::Delete(std::string path, std::int32_t version) {
  if (MaySend()) {
    ++under_way_;
    ScopeExit ended([this] { WriteEnded(); });
    Result<> deleted = co_await inner_.Delete(std::move(path), version);
    co_return deleted;
  }
  std::vector<Op> ops;
  ops.emplace_back(DeleteOp{std::move(path), version});
  MultiResult answer = co_await Wait(std::move(ops));
  if (!answer.ok()) co_return std::unexpected(answer.code());
  co_return Result<>();
}

Task<MultiResult> GroupingClient::Multi(std::vector<Op> ops) {
  if (!MaySend()) co_return co_await Wait(std::move(ops));
  ++under_way_;
  ScopeExit ended([this] { WriteEnded(); });
  MultiResult answer = co_await inner_.Multi(std::move(ops));
  co_return answer;
}

// The tasks of the writes do the work themselves: the first of a group sends it, and answers the others. So
// nothing is left behind when all callers have gone.
Task<MultiResult> GroupingClient::Wait(std::vector<Op> ops) {
  auto write = std::make_shared<Write>();
  for (const Op& op : ops) write->bytes += BytesOf(op);
  write->ops = std::move(ops);
  SessionState state = inner_.state();
  if (state == SessionState::kConnected || state == SessionState::kSuspended)
    write->session = inner_.session();
  waiting_.push_back(write);
  ScopeExit left([this, &write] {
    if (write->answer) return;
    write->is_abandoned = true;
    // It was its turn: the others wait again.
    Group group = std::exchange(write->to_send, {});
    if (group.empty()) return;
    waiting_.insert(waiting_.begin(), group.begin() + 1, group.end());
    WriteEnded();
  });
  while (!write->answer) {
    co_await write->wake.Wait();
    write->wake.Reset();
    // A cancelled task throws here before Send() begins: until then the group is the write's.
    if (!write->to_send.empty()) co_await Send(*write);
  }
  Outcome<MultiResult> answer = std::move(*write->answer);
  if (!answer) answer.error().Rethrow();
  co_return std::move(*answer);
}

// Whoever of the group has no answer at the end, since another one's fault ended the transaction, waits
// again, in front of all others. What was abandoned is not sent: its caller may already have found out that
// nothing was written.
Task<> GroupingClient::Send(Write& first) {
  Group group = std::exchange(first.to_send, {});
  std::erase_if(group, [](const auto& write) { return write->is_abandoned; });
  bool is_sent = false;
  ScopeExit ended([this, &group, &is_sent] {
    std::erase_if(group, [](const auto& write) { return write->answer.has_value(); });
    if (is_sent) {
      Error lost(Verdict::kRetry, "a transaction was abandoned: it is not known whether it was carried out");
      for (const auto& write : group) write->Answer(std::unexpected(Failure(lost)));
    } else {
      waiting_.insert(waiting_.begin(), group.begin(), group.end());
    }
    WriteEnded();
  });
  std::vector<Op> ops;
  for (const auto& write : group) ops.insert(ops.end(), write->ops.begin(), write->ops.end());
  is_sent = true;
  Outcome<MultiResult> answer = co_await Attempt(inner_.Multi(std::move(ops)));
  is_sent = false;
  bool is_single = group.size() == 1;
  if (!answer && (is_single || FailedWith(answer, Verdict::kRetry, Verdict::kLostSession))) {
    for (const auto& write : group) write->Answer(std::unexpected(answer.error()));
    co_return;
  }
  std::size_t begin = 0;
  for (const auto& write : group) {
    ++write->refusals;
    // What is no answer of a transaction, such as an operation that is not permitted: each finds out alone.
    if (!answer) write->refusals = kMostRefusals;
    std::size_t end = begin + write->ops.size();
    bool is_at_fault = answer && !answer->ok() && static_cast<std::size_t>(answer->failed) >= begin &&
                       static_cast<std::size_t>(answer->failed) < end;
    if (answer && (answer->ok() || is_at_fault)) write->Answer(PartOf(*answer, begin, write->ops.size()));
    begin = end;
  }
}

void GroupingClient::WriteEnded() {
  --under_way_;
  StartGroups();
}

// What is to be sent alone, after conflicts, does not wait again.
void GroupingClient::StartGroups() {
  while (!waiting_.empty() && (under_way_ < bounds_.at_once || waiting_.front()->refusals >= kMostRefusals)) {
    Group group = TakeGroup();
    if (group.empty()) continue;
    ++under_way_;
    std::shared_ptr<Write> first = group.front();
    first->to_send = std::move(group);
    first->wake.Set();
  }
}

// Those whose session is over are answered instead, and those whose callers have gone are dropped.
GroupingClient::Group GroupingClient::TakeGroup() {
  Group group;
  std::size_t ops = 0;
  std::size_t bytes = 0;
  while (!waiting_.empty()) {
    std::shared_ptr<Write> next = waiting_.front();
    if (next->is_abandoned) {
      waiting_.pop_front();
      continue;
    }
    if (IsOver(*next)) {
      waiting_.pop_front();
      next->Answer(std::unexpected(
          Failure(Error(Verdict::kLostSession, "the session in which a write was called is over"))));
      continue;
    }
    bool is_alone = next->refusals >= kMostRefusals;
    bool fits = ops + next->ops.size() <= bounds_.ops && bytes + next->bytes <= bounds_.bytes;
    if (!group.empty() && (is_alone || !fits)) break;
    waiting_.pop_front();
    ops += next->ops.size();
    bytes += next->bytes;
    group.push_back(std::move(next));
    if (is_alone) break;
  }
  return group;
}

bool GroupingClient::IsOver(const Write& write) const {
  return write.session && *write.session != inner_.session();
}

}  // namespace nodepool::zk
