#include "zk/recipes/tree_cache.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "async/backoff.h"
#include "async/task.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/scope_exit.h"
#include "zk/recipes/tree_cache_impl.h"

namespace nodepool::zk {

namespace {

// Reads in one message: so many of the largest records that servers accept by default are half of
// the longest answer that our client accepts.
constexpr std::size_t kMaxReads = 32;

Backoff::Settings Pauses() {
  Backoff::Settings settings;
  settings.max = std::chrono::seconds(10);
  return settings;
}

}  // namespace

Task<> TreeCache::Impl::Run() {
  co_await connected.Wait();
  // Differs between processes, so that they do not reconnect at the same moment.
  SeededRandom random(static_cast<std::uint64_t>(client.session().id) ^ std::hash<std::string>()(root));
  Backoff pauses(Pauses(), random);
  for (;;) {
    co_await connected.Wait();
    Outcome<> ended = co_await Attempt(OneRound());
    if (!ended) logger.Warning("Watching {} failed, trying again: {}", root, ended.error().message());
    if (was_synced) pauses.Reset();
    if (connected.is_set()) co_await loop.SleepFor(pauses.Next());
  }
}

Task<> TreeCache::Impl::OneRound() {
  was_synced = false;
  round_ended.Reset();
  if (!watch) {
    // Set before anything is read, so that no change is missed.
    Watcher watcher = [this](const WatchEvent& event) { OnEvent(event); };
    watch = co_await client.AddWatch(root, WatchMode::kPersistentRecursive, std::move(watcher));
  }
  if (!connected.is_set()) co_return;
  DistrustFormerSession();
  ++round;
  is_in_round = true;
  is_walking = true;
  walk_jobs = 1;
  Enqueue(Job{nullptr, root});
  co_await round_ended.Wait();
}

// Transactions have other numbers where a back-up was restored, and the same ones again: what an earlier
// session has read may be neither older nor the same. Every record is reported again.
void TreeCache::Impl::DistrustFormerSession() {
  std::uint64_t generation = client.session().generation;
  if (std::exchange(session, generation) == generation) return;
  for (auto& [below, entry] : known) entry.mzxid = 0;
}

Task<> TreeCache::Impl::Ask() {
  ScopeExit done([this] { --askers; });
  while (!jobs.empty()) {
    std::uint64_t asked_in = round;
    std::vector<Job> asked = TakeJobs();
    if (asked.empty()) continue;
    Outcome<> answered = co_await Attempt(AskFor(asked));
    if (answered || asked_in != round) continue;
    logger.Warning("Reading {} failed, starting again: {}", asked.front().op().path,
                   answered.error().message());
    EndRound();
  }
}

Task<> TreeCache::Impl::AskFor(const std::vector<Job>& asked) {
  std::uint64_t asked_in = round;
  std::vector<ReadOp> ops;
  for (const Job& job : asked) ops.push_back(job.op());
  std::vector<ReadResult> answers = co_await client.ReadMany(std::move(ops));
  if (asked_in == round) OnAnswers(asked, std::move(answers));
}

// As many as fit into a message; what a deletion has overtaken is not read.
std::vector<TreeCache::Impl::Job> TreeCache::Impl::TakeJobs() {
  std::vector<Job> taken;
  while (!jobs.empty() && taken.size() < kMaxReads) {
    Job job = std::move(jobs.front());
    jobs.pop_front();
    if (job.item) {
      Reads& of_path = reads[job.item->path];
      if (of_path.unsent == job.item) of_path.unsent = nullptr;
      if (job.item->number < of_path.valid_from) {
        Settle(*job.item);
        continue;
      }
    }
    taken.push_back(std::move(job));
  }
  DeliverSettled();
  return taken;
}

// Ends early when a read that fails at once ends the round: nothing more belongs to it.
void TreeCache::Impl::OnAnswers(const std::vector<Job>& asked, std::vector<ReadResult> answers) {
  std::uint64_t asked_in = round;
  for (std::size_t i = 0; i < asked.size() && asked_in == round; ++i) {
    const Job& job = asked[i];
    if (job.item) {
      if (answers[i].code == Code::kOk) job.item->answer = std::move(answers[i].node);
      Settle(*job.item);
      continue;
    }
    // Sorted, so that entries reported together end up adjacent in listeners that keep them by
    // name.
    std::ranges::sort(answers[i].names);
    for (const std::string& name : answers[i].names) {
      OnFound(ChildPath(job.path, name));
      if (asked_in != round) return;
    }
    EndWalkJob();
  }
  DeliverSettled();
}

void TreeCache::Impl::OnState(SessionState state) {
  if (state == SessionState::kConnected) {
    connected.Set();
  } else {
    connected.Reset();
    EndRound();
  }
}

void TreeCache::Impl::OnEvent(const WatchEvent& event) {
  if (!is_in_round || !IsBelowRoot(event.path)) return;
  bool is_gone = event.type == EventType::kDeleted;
  bool is_there = event.type == EventType::kCreated || event.type == EventType::kDataChanged;
  Interest interest = listener.InterestIn(event.path);
  if (interest == Interest::kNone) return;
  if (is_there && interest == Interest::kData) {
    return Read(event.path, false, client.own_writes().FindTarget(event.path, event.type));
  }
  if (!is_there && !is_gone) return;
  if (is_walking) decided.insert(event.path);
  auto of_path = reads.find(event.path);
  if (is_gone && of_path != reads.end()) {
    of_path->second.valid_from = last_number + 1;
    of_path->second.unsent = nullptr;
  }
  Push(is_gone ? Item::Kind::kGone : Item::Kind::kPresent, event.path);
  DeliverSettled();
}

// Servers announce a change before they answer the write that made it. A server that has lost our watch still
// answers pings and requests, and nothing else would show it.
bool TreeCache::Impl::IsUnannounced(const std::string& path, const NodeData& node) const {
  bool is_below = path.starts_with(root == "/" ? root : root + "/") && IsBelowRoot(path);
  if (!synced.is_set() || !is_below || listener.InterestIn(path) != Interest::kData) return false;
  if (reads.contains(path)) return false;
  auto entry = known.find(BelowRoot(path));
  return entry == known.end() || entry->second.mzxid < node.stat.mzxid;
}

// What was announced before this write's answer is either what it has written, or not newer than that.
void TreeCache::Impl::OnOwnWrite(const std::string& target, const std::string& path, const NodeData* node) {
  if (node != nullptr && IsUnannounced(path, *node)) {
    logger.Warning("The server did not announce what was written to {}; watching and reading {} again", path,
                   root);
    watch.reset();
    return EndRound();
  }
  if (awaited.empty()) return;
  std::vector<ItemPtr> over;
  std::erase_if(awaited, [&](const Awaited& entry) {
    if (entry.target != target) return false;
    over.push_back(entry.item);
    return true;
  });
  for (const ItemPtr& item : over) {
    if (node == nullptr || item->path != path) {
      Enqueue(Job{item, {}});
      continue;
    }
    Reads& of_path = reads[path];
    if (of_path.unsent == item) of_path.unsent = nullptr;
    item->answer = *node;
    Settle(*item);
  }
  try {
    DeliverSettled();
  } catch (...) {
    logger.Warning("Reporting {} failed, starting again: {}", path, MessageOf(std::current_exception()));
    EndRound();
  }
}

// A znode that the walk found.
void TreeCache::Impl::OnFound(const std::string& path) {
  Interest interest = listener.InterestIn(path);
  if (interest == Interest::kData) return Read(path, true);
  if (interest == Interest::kExistence && !decided.contains(path)) Push(Item::Kind::kPresent, path);
  ++walk_jobs;
  Enqueue(Job{nullptr, path});
}

// The operations in flight no longer count; the next round repeats them.
void TreeCache::Impl::EndRound() {
  ++round;
  is_in_round = false;
  is_walking = false;
  line.clear();
  jobs.clear();
  awaited.clear();
  reads.clear();
  decided.clear();
  synced.Reset();
  round_ended.Set();
  reported.Reach(last_number);
}

// The events of all earlier changes arrive before the answer to a sync, and what they report goes
// through the queue.
Task<> TreeCache::Impl::CatchUp() {
  std::uint64_t caught_in = 0;
  do {
    co_await synced.Wait();
    caught_in = round;
    co_await client.Sync(root);
    co_await reported.WaitFor(last_number);
  } while (caught_in != round);
}

TreeCache::TreeCache(Loop& loop, Client& client, std::string root, Listener& listener)
    : impl_(std::make_unique<Impl>(loop, client, std::move(root), listener)) {}

TreeCache::~TreeCache() = default;

void TreeCache::Start() {
  impl_->session_listener =
      impl_->client.OnSession([impl = impl_.get()](SessionState state) { impl->OnState(state); });
  impl_->write_listener = impl_->client.own_writes().OnEnd(
      [impl = impl_.get()](const std::string& target, const std::string& path, const NodeData* node) {
        impl->OnOwnWrite(target, path, node);
      });
  if (impl_->client.state() == SessionState::kConnected) impl_->connected.Set();
  impl_->tasks.Spawn("follow " + impl_->root, impl_->Run());
}

Task<> TreeCache::Stop() {
  impl_->session_listener.Reset();
  impl_->write_listener.Reset();
  impl_->watch.reset();
  impl_->EndRound();
  co_await impl_->tasks.Stop();
}

bool TreeCache::synced() const { return impl_->synced.is_set(); }

Task<> TreeCache::WaitSynced() { return impl_->synced.Wait(); }

Task<> TreeCache::CatchUp() { return impl_->CatchUp(); }

// The queue of a tree cache: what is to be reported, in order.

namespace {

// Messages in flight at a time.
constexpr int kMaxMessages = 8;

}  // namespace

// `target`: of the own write that will show the change, else empty.
void TreeCache::Impl::Read(const std::string& path, bool is_walk, std::string target) {
  Reads& of_path = reads[path];
  if (of_path.unsent) {
    if (is_walk && !std::exchange(of_path.unsent->is_walk, true)) ++walk_jobs;
    return;
  }
  auto item = std::make_shared<Item>(Item{Item::Kind::kData, path, ++last_number, false, is_walk});
  if (is_walk) ++walk_jobs;
  ++of_path.count;
  of_path.unsent = item;
  line.push_back(item);
  if (target.empty()) {
    Enqueue(Job{item, {}});
  } else {
    awaited.push_back({std::move(target), std::move(item)});
  }
}

void TreeCache::Impl::Push(Item::Kind kind, const std::string& path) {
  line.push_back(std::make_shared<Item>(Item{kind, path, ++last_number, true}));
}

void TreeCache::Impl::Enqueue(Job job) {
  jobs.push_back(std::move(job));
  if (askers >= kMaxMessages) return;
  ++askers;
  tasks.Spawn("read the tree below " + root, Ask());
}

void TreeCache::Impl::EndWalkJob() {
  if (--walk_jobs > 0) return;
  is_walking = false;
  decided.clear();
  Push(Item::Kind::kEndOfWalk, root);
}

void TreeCache::Impl::Settle(Item& item) {
  item.is_settled = true;
  if (!item.is_walk) return;
  bool has_children = item.answer && item.answer->stat.num_children > 0;
  if (has_children) {
    ++walk_jobs;
    Enqueue(Job{nullptr, item.path});
  }
  EndWalkJob();
}

void TreeCache::Impl::DeliverSettled() {
  if (line.empty()) return;
  while (!line.empty() && line.front()->is_settled) {
    ItemPtr item = std::move(line.front());
    line.pop_front();
    switch (item->kind) {
      case Item::Kind::kData:
        DeliverData(*item);
        break;
      case Item::Kind::kPresent:
        DeliverPresent(item->path);
        break;
      case Item::Kind::kGone:
        DeliverGone(item->path);
        break;
      case Item::Kind::kEndOfWalk:
        DeliverEndOfWalk();
        break;
    }
  }
  reported.Reach(line.empty() ? last_number : line.front()->number - 1);
}

void TreeCache::Impl::DeliverData(Item& item) {
  auto of_path = reads.find(item.path);
  bool is_overtaken = item.number < of_path->second.valid_from;
  if (--of_path->second.count == 0) reads.erase(of_path);
  if (is_overtaken) return;
  if (!item.answer) return DeliverGone(item.path);
  std::int64_t mzxid = item.answer->stat.mzxid;
  std::string below = BelowRoot(item.path);
  auto entry = known.find(below);
  bool is_known = entry != known.end() && entry->second.Covers(mzxid, round);
  if (!is_known) listener.OnNode(item.path, *item.answer);
  known.insert_or_assign(std::move(below), Known{is_known ? entry->second.mzxid : mzxid, round});
}

void TreeCache::Impl::DeliverPresent(const std::string& path) {
  std::string below = BelowRoot(path);
  auto entry = known.find(below);
  bool is_known = entry != known.end();
  if (!is_known) listener.OnNode(path, NodeData());
  known.insert_or_assign(std::move(below), Known{is_known ? entry->second.mzxid : 0, round});
}

void TreeCache::Impl::DeliverGone(const std::string& path) {
  std::string below = BelowRoot(path);
  if (known.contains(below)) listener.OnGone(path);
  known.erase(below);
}

void TreeCache::Impl::DeliverEndOfWalk() {
  std::vector<std::string> vanished;
  for (const auto& [below, entry] : known) {
    if (entry.round != round) vanished.push_back(ChildPath(root, below));
  }
  // Children before their parents, as the servers delete.
  std::ranges::sort(vanished, std::greater<>());
  for (const std::string& path : vanished) DeliverGone(path);
  was_synced = true;
  synced.Set();
  listener.OnSynced();
}

}  // namespace nodepool::zk
