#include "zk/recipes/lock.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/log/logging.h"

namespace nodepool::zk {

namespace {

constexpr std::string_view kMark = "__lock__";
constexpr std::size_t kDigits = 10;

// Requires a contender. Numbers are compared as text, as all other lockers do.
std::string_view NumberOf(std::string_view contender) { return contender.substr(contender.size() - kDigits); }

// One attempt to enter the line of a directory and to get to its head. Lives in the frame of the
// coroutine that owns the attempt.
class Contender {
 public:
  Contender(const Locker& locker, Loop& loop, Client& client, Random& random, std::string directory,
            std::string identifier)
      : locker_(locker),
        loop_(loop),
        client_(client),
        random_(random),
        directory_(std::move(directory)),
        identifier_(std::move(identifier)),
        prefix_(ContenderPrefix(random)) {}

  // Repeats Approach() after connection losses.
  Task<std::optional<HeldLock>> Contend(bool may_wait);
  // The first attempt enters the line without a look at it, and `reads` are made under the lock.
  Task<std::optional<Locker::Acquired>> ContendForFree(std::vector<ReadOp> reads);

  // Removes the contender if one may exist and does not hold the lock. Tries until the contender is
  // deleted or its session ended, and does not fail.
  Task<> WithdrawUnlessHeld();

 private:
  Task<std::optional<HeldLock>> Approach(bool may_wait);
  Task<Result<Children>> ReadLine();
  Task<> Enter();
  Task<> EnterUnseen();
  Task<bool> EnterWithDirectory();
  Task<> AwaitChange(std::string predecessor);
  Task<> TryToRemove();

  // Before a contender is created. False: another part of this process was faster.
  bool TakeClaim(bool may_wait) {
    if (claim_) return true;
    if (!may_wait && locker_.IsClaimed(directory_)) return false;
    claim_ = locker_.Claim(directory_);
    return true;
  }
  HeldLock Held(const std::string& name) const { return {PathOf(name), session_, claim_}; }
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  bool IsOwn(std::string_view name) const { return name.starts_with(prefix_) && IsContender(name); }
  bool SessionIsOver() const {
    return client_.session() != session_ || client_.state() == SessionState::kLost ||
           client_.state() == SessionState::kClosed;
  }
  void RequireSession() const {
    if (!has_entered_) return;
    if (SessionIsOver()) throw Error(Verdict::kLostSession, "lock " + directory_ + ": the session was lost");
  }
  Error Vanished() const {
    return Error(Verdict::kNotFound, "lock " + directory_ + ": what it protects does not exist any more");
  }
  Error Refused(Code code) const {
    return Error(Verdict::kFail, "lock " + directory_ + ": " + std::string(ToString(code)));
  }

  const Locker& locker_;
  Loop& loop_;
  Client& client_;
  Random& random_;
  std::string directory_;
  std::string identifier_;
  std::string prefix_;
  std::shared_ptr<LockClaim> claim_;
  Session session_;           // in which the contender was created
  bool has_entered_ = false;  // a contender of ours may be there
  bool is_held_ = false;      // our contender holds the lock
  bool has_seen_directory_ = false;
  bool must_sync_ = false;           // an answer was lost: its effect may not be visible yet
  std::vector<ReadOp> reads_;        // to be made with each look at the line
  std::vector<ReadResult> answers_;  // of the last look
};

Task<std::optional<HeldLock>> Contender::Contend(bool may_wait) {
  Backoff backoff({}, random_);
  for (;;) {
    Outcome<std::optional<HeldLock>> lock = co_await Attempt(Approach(may_wait));
    if (lock) {
      is_held_ = lock->has_value();
      co_return std::move(*lock);
    }
    if (!FailedWith(lock, Verdict::kRetry)) lock.error().Rethrow();
    must_sync_ = true;
    co_await loop_.SleepFor(backoff.Next());
    RequireSession();
  }
}

Task<std::optional<HeldLock>> Contender::Approach(bool may_wait) {
  for (;;) {
    // The lost create may still be on its way through another server.
    if (std::exchange(must_sync_, false)) co_await client_.Sync(directory_);
    Result<Children> children = co_await ReadLine();
    RequireSession();
    if (!children) {
      if (has_seen_directory_) throw Vanished();
      if (!TakeClaim(may_wait)) co_return std::nullopt;
      bool is_first = co_await EnterWithDirectory();
      RequireSession();
      if (is_first && reads_.empty()) co_return Held(prefix_ + "0000000000");
      continue;
    }
    has_seen_directory_ = true;
    std::vector<std::string> line = SortedContenders(std::move(children->names));
    auto own = std::ranges::find_if(line, [this](const std::string& name) { return IsOwn(name); });
    if (own == line.end()) {
      bool is_ours = (may_wait || line.empty()) && TakeClaim(may_wait);
      if (!is_ours) co_return std::nullopt;
      co_await Enter();
      continue;
    }
    if (own == line.begin()) co_return Held(*own);
    if (!may_wait) co_return std::nullopt;
    std::string predecessor = PathOf(*std::prev(own));
    co_await AwaitChange(std::move(predecessor));
  }
}

Task<std::optional<Locker::Acquired>> Contender::ContendForFree(std::vector<ReadOp> reads) {
  reads_ = std::move(reads);
  // What waits for a connection may be carried out in another session than the present one.
  if (client_.state() == SessionState::kConnected) {
    if (!TakeClaim(false)) co_return std::nullopt;
    Outcome<> entered = co_await Attempt(EnterUnseen());
    if (!entered && !FailedWith(entered, Verdict::kRetry)) entered.error().Rethrow();
    must_sync_ = !entered;
    RequireSession();
  }
  std::optional<HeldLock> lock = co_await Contend(false);
  if (!lock) co_return std::nullopt;
  co_return Locker::Acquired{std::move(*lock), std::move(answers_)};
}

// A directory that is missing is left to the look at it.
Task<> Contender::EnterUnseen() {
  session_ = client_.session();
  has_entered_ = true;
  Result<Created> created =
      co_await client_.Create(PathOf(prefix_), identifier_, CreateMode::kEphemeralSequential);
  if (created) co_return;
  has_entered_ = false;
  if (created.error() != Code::kNoNode) throw Refused(created.error());
}

// The children of the directory, and what is to be read with them.
Task<Result<Children>> Contender::ReadLine() {
  answers_.clear();
  if (reads_.empty()) co_return co_await client_.GetChildren(directory_);
  std::vector<ReadOp> ops{{ReadOp::Kind::kChildren, directory_}};
  ops.insert(ops.end(), reads_.begin(), reads_.end());
  std::vector<ReadResult> answers = co_await client_.ReadMany(std::move(ops));
  if (answers.front().code != Code::kOk) co_return std::unexpected(answers.front().code);
  answers_.assign(std::make_move_iterator(answers.begin() + 1), std::make_move_iterator(answers.end()));
  co_return Children{std::move(answers.front().names), {}};
}

Task<> Contender::Enter() {
  session_ = client_.session();
  has_entered_ = true;
  Result<Created> created =
      co_await client_.Create(PathOf(prefix_), identifier_, CreateMode::kEphemeralSequential);
  if (created) co_return;
  if (created.error() == Code::kNoNode) throw Vanished();
  throw Refused(created.error());
}

// Creates the directory and the contender in one transaction: no other contender can be ahead then.
// False: another client created the directory meanwhile.
Task<bool> Contender::EnterWithDirectory() {
  session_ = client_.session();
  has_entered_ = true;
  std::vector<Op> ops;
  ops.emplace_back(CreateOp{directory_, "", CreateMode::kPersistent});
  ops.emplace_back(CreateOp{PathOf(prefix_), identifier_, CreateMode::kEphemeralSequential});
  MultiResult made = co_await client_.Multi(std::move(ops));
  if (made.ok()) co_return true;
  if (made.code() == Code::kNodeExists) co_return false;
  if (made.code() == Code::kNoNode) throw Vanished();
  throw Refused(made.code());
}

// Ends when the predecessor is deleted, when anything else happened to it, or when the session
// ended, of which the watcher is notified, too.
Task<> Contender::AwaitChange(std::string predecessor) {
  auto change = std::make_shared<Event>("another contender's release of a lock");
  Watcher watcher = [change](const WatchEvent&) { change->Set(); };
  Result<NodeData> ahead = co_await client_.GetAndWatch(std::move(predecessor), std::move(watcher));
  if (ahead) co_await change->Wait();
}

Task<> Contender::WithdrawUnlessHeld() {
  Backoff backoff({}, random_);
  while (has_entered_ && !is_held_ && !SessionIsOver()) {
    Outcome<> removed = co_await Attempt(TryToRemove());
    if (removed || FailedWith(removed, Verdict::kLostSession)) co_return;
    log::Logger("nodepool.zk.lock")
        .Debug("Leaving the line of {}: {}", directory_, removed.error().message());
    co_await loop_.SleepFor(backoff.Next());
  }
}

Task<> Contender::TryToRemove() {
  co_await client_.Sync(directory_);
  Result<Children> children = co_await client_.GetChildren(directory_);
  if (!children) co_return;
  for (const std::string& name : children->names) {
    if (!IsOwn(name)) continue;
    Result<> deleted = co_await client_.Delete(PathOf(name));
    if (!deleted && deleted.error() != Code::kNoNode) throw Refused(deleted.error());
  }
}

// Awaits `contend`, an attempt of `contender`, and leaves the line unless the attempt got the lock.
Task<std::optional<HeldLock>> TakeOrLeave(Contender& contender, Task<std::optional<HeldLock>> contend) {
  auto leave = [&contender] { return contender.WithdrawUnlessHeld(); };
  std::optional<HeldLock> lock = co_await WithCleanup(std::move(contend), leave);
  co_return lock;
}

Task<> RemoveOnce(Client& client, std::string path) {
  Result<> deleted = co_await client.Delete(path);
  if (deleted || deleted.error() == Code::kNoNode) co_return;
  throw Error(Verdict::kFail, "unlock " + path + ": " + std::string(ToString(deleted.error())));
}

// Removes the contender of a held lock, as long as it is still this session's.
Task<> RemoveHeld(Loop& loop, Client& client, Random& random, const Locker& locker, HeldLock lock) {
  Backoff backoff({}, random);
  while (locker.IsHeld(lock)) {
    Outcome<> removed = co_await Attempt(RemoveOnce(client, lock.path));
    if (removed || FailedWith(removed, Verdict::kLostSession)) co_return;
    if (!FailedWith(removed, Verdict::kRetry)) removed.error().Rethrow();
    co_await loop.SleepFor(backoff.Next());
  }
}

}  // namespace

bool IsContender(std::string_view name) {
  if (name.size() < kMark.size() + kDigits) return false;
  bool has_number = std::ranges::all_of(NumberOf(name), [](char c) { return c >= '0' && c <= '9'; });
  std::string_view rest = name.substr(0, name.size() - kDigits);
  return has_number &&
         (rest.ends_with(kMark) || (rest.ends_with("-") && rest.substr(0, rest.size() - 1).ends_with(kMark)));
}

std::vector<std::string> SortedContenders(std::vector<std::string> children) {
  std::erase_if(children, [](const std::string& name) { return !IsContender(name); });
  std::ranges::stable_sort(children, {}, [](const std::string& name) { return NumberOf(name); });
  return children;
}

std::string ContenderPrefix(Random& random) { return random.UuidHex() + std::string(kMark); }

Task<std::optional<HeldLock>> Locker::TryAcquire(std::string directory, std::string identifier) {
  Contender contender(*this, loop_, client_, random_, std::move(directory), std::move(identifier));
  std::optional<HeldLock> lock = co_await TakeOrLeave(contender, contender.Contend(false));
  co_return lock;
}

Task<std::optional<Locker::Acquired>> Locker::TryAcquireFree(std::string directory,
                                                             std::vector<ReadOp> reads) {
  Contender contender(*this, loop_, client_, random_, std::move(directory), "");
  auto leave = [&contender] { return contender.WithdrawUnlessHeld(); };
  std::optional<Acquired> acquired = co_await WithCleanup(contender.ContendForFree(std::move(reads)), leave);
  co_return acquired;
}

Task<std::optional<HeldLock>> Locker::Acquire(std::string directory, SteadyTime deadline,
                                              std::string identifier) {
  Contender contender(*this, loop_, client_, random_, directory, std::move(identifier));
  Task<std::optional<HeldLock>> contend = contender.Contend(true);
  if (deadline != SteadyTime::max()) {
    contend = WithDeadline(loop_, deadline, "lock " + directory, std::move(contend));
  }
  try {
    std::optional<HeldLock> lock = co_await TakeOrLeave(contender, std::move(contend));
    co_return lock;
  } catch (const Error& error) {
    if (error.verdict() != Verdict::kTimedOut) throw;
    co_return std::nullopt;
  }
}

bool Locker::IsClaimed(std::string_view directory) const {
  auto [begin, end] = claims_->equal_range(directory);
  return std::any_of(begin, end, [&](const auto& claim) { return claim.second == client_.session(); });
}

Task<> Locker::Release(HeldLock lock) {
  lock.BeginRelease();
  Task<> release = RemoveHeld(loop_, client_, random_, *this, std::move(lock));
  co_await Uninterrupted(std::move(release));
}

namespace {

namespace asio = boost::asio;

constexpr Duration kReelectionPause = std::chrono::seconds(5);

// Runs `task` until it ends or `stop` is set, which cancels it. Returns how the task
// ended; cancelling the caller cancels the task.
Task<Outcome<>> RunUntil(std::shared_ptr<Event> stop, Task<> task) {
  auto executor = co_await asio::this_coro::executor;
  auto outcome = co_await asio::experimental::make_parallel_group(
                     asio::co_spawn(executor, std::move(task), asio::deferred),
                     asio::co_spawn(executor, stop->Wait(), asio::deferred))
                     .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  auto& error = std::get<1>(outcome);
  if (!error) co_return Outcome<>();
  co_return std::unexpected(Failure(error));
}

}  // namespace

Task<> Election::Run(std::function<Task<>()> lead) {
  auto reign = [&](HeldLock& lock) { return Reign(lock, lead()); };
  auto resign = [&](HeldLock& lock) { return locker_.Release(lock); };
  bool is_over = false;
  while (!is_over) is_over = co_await Bracket(Win(), reign, resign);
}

Task<> Election::RunForEver(std::function<Task<>()> lead, std::string what, log::Logger logger) {
  for (;;) {
    Outcome<> led = co_await Attempt(Run(lead));
    if (!led) logger.Error("{} failed, another may take over: {}", what, led.error().message());
    co_await loop_.SleepFor(kReelectionPause);
  }
}

// Waits in line until it leads.
Task<HeldLock> Election::Win() {
  Backoff backoff({}, random_);
  for (;;) {
    Outcome<std::optional<HeldLock>> lock = co_await Attempt(Stand());
    if (lock && *lock && locker_.IsHeld(**lock)) co_return std::move(**lock);
    if (!lock) {
      if (client_.state() == SessionState::kClosed) lock.error().Rethrow();
      log::Logger("nodepool.zk.election").Debug("Contending for {}: {}", directory_, lock.error().message());
    }
    co_await loop_.SleepFor(backoff.Next());
  }
}

Task<std::optional<HeldLock>> Election::Stand() {
  co_await EnsurePath(client_, ParentPath(directory_));
  std::optional<HeldLock> lock = co_await locker_.Acquire(directory_, SteadyTime::max(), identifier_);
  co_return lock;
}

// Leads. False: the session was lost, and with it the leadership.
Task<bool> Election::Reign(HeldLock lock, Task<> lead) {
  auto deposed = std::make_shared<Event>("the loss of the leadership");
  Subscription on_session = client_.OnSession([this, deposed, lock](SessionState) {
    if (!locker_.IsHeld(lock)) deposed->Set();
  });
  Outcome<> led = co_await RunUntil(deposed, std::move(lead));
  if (deposed->is_set() && client_.state() != SessionState::kClosed) {
    if (led || FailedWith(led, Verdict::kCancelled, Verdict::kLostSession)) co_return false;
  }
  if (!led) led.error().Rethrow();
  co_return true;
}

}  // namespace nodepool::zk
