#pragma once

#include <map>
#include <optional>
#include <string>

#include "async/backoff.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/random.h"
#include "drivers/kubernetes/api/cluster.h"

namespace nodepool::drivers::kubernetes {

class Follower;

// A copy of a collection that one list fills and one watch keeps current, for all tasks that wait for one of
// its objects; neither costs more when more of them wait (driver-kubernetes.md 4.4). After an interruption
// the watch goes on from the last version seen; it begins with a list again when the server has dropped that.
class ObjectCache {
 public:
  // Everything outlives the cache. `selector` is a query such as "labelSelector=...", or empty.
  ObjectCache(Loop& loop, Random& random, Cluster& cluster, std::string collection, std::string selector);
  ~ObjectCache();  // no Follower is left

  // Begins to fill the cache in a task of `tasks`, if it has not begun.
  void Start(TaskGroup& tasks);

  // Ends when the cache has been filled once. Errors: the collection could never be read yet.
  Task<> WaitForFirstList();

  bool is_listed() const { return is_listed_; }
  const std::map<std::string, Object>& objects() const { return objects_; }  // by Object::key()
  const std::string& collection() const { return collection_; }

 private:
  friend class Follower;

  Task<> Run();
  Task<> ListAndWatch();
  Task<> List();
  Task<> Watch();
  bool OnLine(std::string_view line);
  void Apply(const std::string& type, Object object);
  void Notify(const std::string& key, bool is_deleted);
  void NotifyAllOfList();
  void Report(const Failure& failure);

  Loop& loop_;
  Cluster& cluster_;
  std::string collection_;
  std::string selector_;
  log::Logger logger_{"nodepool.driver.kubernetes"};
  Backoff pauses_;
  bool is_started_ = false;

  std::map<std::string, Object> objects_;
  std::string version_;     // from which the watch goes on; empty: a list is needed
  SteadyTime listed_at_{};  // when the last complete list began
  bool is_listed_ = false;
  std::optional<Failure> failure_;  // of the last attempt
  std::string last_cause_;          // that was logged
  WaitList tried_;
  std::multimap<std::string, Follower*> followers_;
};

// Follows one object of a cache. Is destroyed before the cache.
class Follower {
 public:
  Follower(ObjectCache& cache, std::string key);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // As last seen; null: it has not been seen, or is gone.
  const Object* object() const;
  // It was deleted, or did not exist, after this began to follow.
  bool was_gone() const { return was_gone_; }

  // Ends at the next change, at once if there was one since the last call, or at `until`. Errors: the
  // collection may not be read (403, 404).
  Task<> Change(SteadyTime until);

 private:
  friend class ObjectCache;

  ObjectCache& cache_;
  std::string key_;
  SteadyTime since_;
  bool was_gone_ = false;
  Event changed_{"a change of an object of the cluster"};
  std::multimap<std::string, Follower*>::iterator place_;
};

}  // namespace nodepool::drivers::kubernetes
