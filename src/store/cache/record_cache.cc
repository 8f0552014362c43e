#include "store/cache/record_cache.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "base/log/logging.h"
#include "base/scope_exit.h"
#include "zk/recipes/lock.h"

namespace nodepool::store {

namespace {

using zk::ReadOp;
using zk::ReadResult;
using Interest = zk::TreeCache::Interest;

// Reads in one message: so many of the largest records that servers accept by default are half of the longest
// answer that our client accepts.
constexpr std::size_t kMaxReads = 32;
// Messages in flight at a time.
constexpr std::size_t kMaxMessages = 8;

class Reading {
 public:
  Reading(Tree& tree, zk::TreeCache::Listener& listener, IsWanted is_wanted)
      : tree_(tree),
        listener_(listener),
        is_wanted_(std::move(is_wanted)),
        tasks_(tree.loop(), log::Logger("nodepool.zk.ZooKeeper")) {}

  Task<> Run(std::string root) {
    Read({ReadOp::Kind::kChildren, std::move(root)});
    auto stop = [this] { return tasks_.Stop(); };
    co_await WithCleanup(tasks_.Join(), stop);
    if (failure_) failure_->Rethrow();
  }

 private:
  void Read(ReadOp op) {
    due_.push_back(std::move(op));
    if (askers_ >= kMaxMessages) return;
    ++askers_;
    tasks_.Spawn("read a part of the tree", Ask());
  }

  Task<> Ask() {
    ScopeExit done([this] { --askers_; });
    while (!due_.empty() && !failure_) {
      Outcome<> taken = co_await Attempt(AskFor(TakeDue()));
      if (!taken && !failure_) failure_ = taken.error();
    }
  }

  std::vector<ReadOp> TakeDue() {
    auto end = due_.begin() + static_cast<std::ptrdiff_t>(std::min(due_.size(), kMaxReads));
    std::vector<ReadOp> ops(std::move_iterator(due_.begin()), std::move_iterator(end));
    due_.erase(due_.begin(), end);
    return ops;
  }

  Task<> AskFor(std::vector<ReadOp> ops) {
    std::function<Task<std::vector<ReadResult>>()> ask = [&] { return tree_.client().ReadMany(ops); };
    std::vector<ReadResult> answers = co_await tree_.Repeat(std::move(ask));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (answers[i].code != zk::Code::kOk) continue;
      if (ops[i].kind == ReadOp::Kind::kData) {
        OnRecord(ops[i].path, answers[i].node);
      } else {
        OnNames(ops[i].path, std::move(answers[i].names));
      }
    }
  }

  void OnRecord(const std::string& path, const zk::NodeData& node) {
    if (is_wanted_ && !is_wanted_(node.data)) return;
    listener_.OnNode(path, node);
    if (node.stat.num_children > 0) Read({ReadOp::Kind::kChildren, path});
  }

  void OnNames(const std::string& parent, std::vector<std::string> names) {
    std::ranges::sort(names);
    for (const std::string& name : names) {
      std::string path = parent + "/" + name;
      Interest interest = listener_.InterestIn(path);
      if (interest == Interest::kData) {
        Read({ReadOp::Kind::kData, std::move(path)});
        continue;
      }
      if (interest == Interest::kExistence) listener_.OnNode(path, zk::NodeData());
      // There is nothing below a contender.
      if (!zk::IsContender(name)) Read({ReadOp::Kind::kChildren, std::move(path)});
    }
  }

  Tree& tree_;
  zk::TreeCache::Listener& listener_;
  IsWanted is_wanted_;
  std::deque<ReadOp> due_;
  std::size_t askers_ = 0;
  std::optional<Failure> failure_;
  TaskGroup tasks_;
};

}  // namespace

Task<> ReadOnce(Tree& tree, std::string root, zk::TreeCache::Listener& listener, IsWanted is_wanted) {
  Reading reading(tree, listener, std::move(is_wanted));
  co_await reading.Run(std::move(root));
}

Cache::Cache(Loop& loop, zk::Client& client, Settings settings)
    : malformed_(log::Logger(settings.logger)),
      loop_(loop),
      kind_(settings.kind),
      root_(settings.root),
      tree_(loop, client, root_, *this) {}

void Cache::Start() {
  is_started_ = true;
  tree_.Start();
}

void Cache::OnNode(const std::string& path, const zk::NodeData& node) {
  OnZnode(path, node);
  any_change_.Notify();
}

void Cache::OnGone(const std::string& path) {
  malformed_.Discard(path);
  OnZnodeGone(path);
  any_change_.Notify();
}

}  // namespace nodepool::store
