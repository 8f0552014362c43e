#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "async/backoff.h"
#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "base/scope_exit.h"
#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cluster.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

class Follower;

// A copy of a collection that one list fills and one watch keeps current, for all tasks that wait for one of
// its objects; neither costs more when more of them wait (driver-kubernetes.md 4.4). A watch that has lasted
// its time goes on from the last version seen. After a refusal, a silence or a cut it begins with a list
// again, whose version may be lower, and which replaces everything that was known.
class ObjectCache {
 public:
  // What is to be done about each change, a list included; null: the object did not exist, or does no more.
  using OnChange = std::function<void(const Object* before, const Object* now)>;

  struct Watched {
    std::string collection;    // api/object.h
    std::string selector;      // a query such as "labelSelector=...", or empty
    OnChange on_change = {};   // null: nothing
    std::string without = {};  // what it means for the provider that it cannot be read, for operators
    // The bound for all objects together, by their weight; a watch that brings more is an error, and a list
    // shows after half a minute whether they are still there.
    std::size_t most = driver::cloud::api::kMaxBytes;
  };

  // Everything outlives the cache.
  ObjectCache(Loop& loop, Random& random, Cluster& cluster, Watched watched);
  ~ObjectCache();  // no Follower is left

  // Begins to fill the cache in a task of `tasks`, if it has not begun.
  void Start(TaskGroup& tasks);

  // Ends when the cache has been filled once. Errors: the collection could never be read yet.
  Task<> WaitForFirstList();

  bool is_listed() const { return is_listed_; }
  // Never listed yet, since we may not (403, 404).
  bool is_refused() const;
  const std::map<std::string, Object>& objects() const { return objects_; }  // by Object::key()
  const std::string& collection() const { return watched_.collection; }

 private:
  friend class Follower;

  Task<> Run();
  Task<> ListAndWatch();
  Task<> List();
  Task<> Watch();
  bool MayGoOn(const Outcome<>& ended, SteadyTime begun) const;
  void OnEvent(WatchEvent event);
  [[noreturn]] void FailAsEndless();
  // nullopt: it is gone.
  void Set(const std::string& key, std::optional<Object> object);
  void Notify(const std::string& key, bool is_deleted);
  void NotifyAllOfList();
  void Report(const Failure& failure);

  Loop& loop_;
  Cluster& cluster_;
  Watched watched_;
  log::Logger logger_{"nodepool.driver.kubernetes"};
  Backoff pauses_;
  bool is_started_ = false;

  std::map<std::string, Object> objects_;
  std::size_t weight_ = 0;  // of objects_
  std::string version_;     // from which the watch goes on; empty: a list is needed
  SteadyTime listed_at_{};  // when the last complete list began
  SteadyTime heard_at_{};   // when the watch brought its last line, or began
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

// "labelSelector=..." of what this provider has made.
std::string OwnSelector(const KubernetesConfig& config);

// What a provider watches in its cluster, each collection from its first use on.
class Watches {
 public:
  // Everything outlives it.
  Watches(const driver::cloud::AdapterEnvironment& environment, const KubernetesConfig& config,
          Cluster& cluster);

  // Namespaces of this provider, or of OpenShift all projects that we may see.
  ObjectCache& Namespaces();
  // Pods of this provider in all namespaces.
  ObjectCache& Pods();
  // Pods of this provider in the namespace of a pool of openshiftpods.
  ObjectCache& PodsOfPool(const std::string& pool);

  // A collection of the caller's own, and the start of its watch.
  std::unique_ptr<ObjectCache> NewCache(ObjectCache::Watched watched);
  void Start(ObjectCache& cache) { cache.Start(tasks_); }

  // Until the result is destroyed, the end of pods in a namespace, or of "NAMESPACE/POD", is our own work.
  // Otherwise the framework checks when a pod ends, or begins to.
  [[nodiscard]] auto Deleting(std::string key) {
    return ScopeExit([this, place = deletions_.insert(std::move(key))] { deletions_.erase(place); });
  }

  // Ends all of them.
  Task<> Stop() { return tasks_.Stop(); }

 private:
  void SeePod(const Object* before, const Object* now);

  const driver::cloud::AdapterEnvironment& environment_;
  const KubernetesConfig& config_;
  Cluster& cluster_;
  std::multiset<std::string> deletions_;
  ObjectCache namespaces_;
  ObjectCache pods_;
  std::map<std::string, std::unique_ptr<ObjectCache>> pods_of_pools_;
  TaskGroup tasks_;  // ended before the rest is destroyed
};

// What a provider reaches its cluster with; replaced in tests.
struct Means {
  std::unique_ptr<net::HttpClient> http;
  std::unique_ptr<process::Runner> runner;
  process::Environment environment;  // of credential plugins
  AccessSource::ReadFiles read_files;
};

// What the parts of a provider of one of the three drivers share.
struct Cloud {
  Cloud(driver::cloud::AdapterEnvironment environment, std::shared_ptr<const KubernetesConfig> config,
        Means means);

  Loop& loop() { return environment.loop; }

 private:
  Means means_;  // used by all that follows

 public:
  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const KubernetesConfig> config;
  log::Logger logger{"nodepool.driver.kubernetes"};
  AccessSource access;
  Cluster cluster;
  // Whether the cluster lets us give the rights that RoleBody calls full.
  bool grants_full_roles = true;
  Watches watches;  // end before the rest is destroyed
};

}  // namespace nodepool::drivers::kubernetes
