#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::zk {

// How order is preserved: everything to be reported becomes an item of one queue; an item that has
// to be read first holds up those behind it. So the listener is notified of changes in the order in
// which they happened, although many reads are in flight.
//
// A round begins with each connection. Its walk appends an item for every znode found to the same
// queue, and after them one that compares what is known with what the round has seen. Changes that
// happen meanwhile are in the queue, too.
struct TreeCache::Impl {
  struct Item {
    enum class Kind { kData, kPresent, kGone, kEndOfWalk };
    Kind kind;
    std::string path;
    std::uint64_t number;  // its place in the queue
    bool is_settled;       // false: the read has not been answered
    bool is_walk = false;  // the walk continues below it
    Result<NodeData> answer = std::unexpected(Code::kNoNode);
  };
  using ItemPtr = std::shared_ptr<Item>;

  // Something to read from the servers: the data for an item, or else the children of a path, for
  // the walk.
  struct Job {
    ItemPtr item;
    std::string path;

    ReadOp op() const {
      return item ? ReadOp{ReadOp::Kind::kData, item->path} : ReadOp{ReadOp::Kind::kChildren, path};
    }
  };

  // A change that the answer to a write of our own shows.
  struct Awaited {
    std::string target;  // see OwnWrites
    ItemPtr item;
  };

  // What was reported to the listener. A listener that fails, for lack of memory, gets it in the next round
  // again.
  struct Known {
    std::int64_t mzxid;   // 0 where only existence matters, or it is of an earlier session
    std::uint64_t round;  // in which it was last seen

    // Whether what was reported is this version or, in the same round, a later one, which a read that was
    // sent before may have shown. In a later round a lower number is news: servers whose state was restored.
    bool Covers(std::int64_t other, std::uint64_t in_round) const {
      return in_round == round ? other <= mzxid : other == mzxid;
    }
  };

  // The reads of one path that are in the queue.
  struct Reads {
    int count = 0;
    ItemPtr unsent;                // will show all that happened so far
    std::uint64_t valid_from = 0;  // earlier ones were overtaken by a deletion
  };

  Impl(Loop& loop, Client& client, std::string root, Listener& listener)
      : loop(loop),
        client(client),
        root(std::move(root)),
        listener(listener),
        logger("nodepool.zk.ZooKeeper"),
        tasks(loop, logger) {}

  // Tasks.
  Task<> Run();
  Task<> OneRound();
  Task<> Ask();
  Task<> AskFor(const std::vector<Job>& asked);
  Task<> CatchUp();

  // Handlers of events.
  void OnState(SessionState state);
  void OnEvent(const WatchEvent& event);
  void OnOwnWrite(const std::string& target, const std::string& path, const NodeData* node);
  bool IsUnannounced(const std::string& path, const NodeData& node) const;
  void OnFound(const std::string& path);
  void EndRound();
  void DistrustFormerSession();

  // Requests to the servers and their answers.
  std::vector<Job> TakeJobs();
  void OnAnswers(const std::vector<Job>& asked, std::vector<ReadResult> answers);
  void Settle(Item& item);

  // The queue.
  void Read(const std::string& path, bool is_walk, std::string target = "");
  void Push(Item::Kind kind, const std::string& path);
  void Enqueue(Job job);
  void EndWalkJob();
  void DeliverSettled();
  void DeliverData(Item& item);
  void DeliverPresent(const std::string& path);
  void DeliverGone(const std::string& path);
  void DeliverEndOfWalk();

  bool IsBelowRoot(std::string_view path) const { return path.size() > root.size(); }
  // A path without the root, as `known` has it: most of those are short enough to need no memory of their
  // own.
  std::string BelowRoot(const std::string& path) const {
    return path.substr(root == "/" ? 1 : root.size() + 1);
  }
  std::string ChildPath(const std::string& path, const std::string& name) const {
    return path == "/" ? "/" + name : path + "/" + name;
  }

  Loop& loop;
  Client& client;
  std::string root;
  Listener& listener;
  log::Logger logger;
  TaskGroup tasks;
  Subscription session_listener;
  Subscription write_listener;
  std::optional<Subscription> watch;
  Event connected{"a connection to ZooKeeper"};
  Event round_ended{"a change, or a fault of reading"};
  Event synced{"a complete cache"};
  Progress reported{
      "the cache to catch up"};  // of the numbers of the queue; a dropped item counts as reported

  std::uint64_t session = 0;  // the generation of that in which `known` is compared
  std::uint64_t round = 0;
  bool is_in_round = false;
  bool was_synced = false;  // in this round
  bool is_walking = false;
  int walk_jobs = 0;  // unfinished parts of the walk
  int askers = 0;
  std::uint64_t last_number = 0;
  std::deque<ItemPtr> line;
  std::deque<Job> jobs;
  std::vector<Awaited> awaited;  // seldom more than one: events and answers come in pairs
  TextMap<Known> known;          // by the path below the root
  TextMap<Reads> reads;
  // Paths of which only existence matters, and that an event reported during the walk: a
  // listing that was answered before the event but handled after it must not contradict it.
  TextSet decided;
};

}  // namespace nodepool::zk
