#pragma once

#include <boost/json/object.hpp>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "net/http/http_client.h"

namespace nodepool::testing {

// An in-process API server of Kubernetes with OpenShift's projects: the parts that Nodepool uses, watches
// included. Its pods run, and its namespaces end, after a while. It records every call and simulates the
// faults that a test wants. For tests in virtual time.
class KubernetesImposter {
 public:
  explicit KubernetesImposter(Loop& loop) : loop_(loop) {}
  ~KubernetesImposter();

  // `call.url` is below "https://cluster".
  Task<net::HttpReply> Answer(net::HttpCall call);

  // --- Recorded calls ---------------------------------------------------------
  struct Call {
    std::string method;
    std::string path;  // with its query
    boost::json::object body;
    std::string authorization;
  };
  const std::vector<Call>& calls() const { return calls_; }
  void ClearCalls() { calls_.clear(); }
  // Their number, by method and the beginning of the path; queries do not count.
  int Count(const std::string& method, const std::string& path) const;
  // The body of the last POST to a collection.
  boost::json::object Posted(const std::string& collection) const;

  // --- Faults -----------------------------------------------------------------
  struct Fault {
    std::string method;
    std::string path;  // its end, without query
    int status = 0;    // 0: the connection breaks
    std::string reason;
    std::string message;
    int retry_after = 0;
    int times = 1;
    bool has_effect = false;  // the call is carried out nevertheless
  };
  void Add(Fault fault) { faults_.push_back(std::move(fault)); }
  std::size_t page_size = 500;
  int pages_that_expire = 0;  // so many pages behind the first one are refused with 410
  // No call is answered.
  bool is_silent = false;
  // Breaks the open watches.
  void CutWatches();
  // Versions up to now are too old for watches; `as_event`: the answer is an ERROR event.
  void DropVersions(bool as_event);
  // A backup is restored, and all watches break: versions go on from this one, and watches from a higher one
  // are silent until it is reached.
  void RestoreAt(std::int64_t version);

  // --- Contents ---------------------------------------------------------------
  // By path; of projects that of the namespace.
  std::map<std::string, boost::json::object> objects;
  std::vector<std::string> Namespaces() const;
  // Makes or changes an object, and tells the watches.
  void Put(const std::string& path, boost::json::object object);
  void Remove(const std::string& path);
  void SetPodStatus(const std::string& name_space, const std::string& pod, boost::json::object status);

  Duration pod_starts = std::chrono::seconds(2);
  Duration namespace_ends = std::chrono::seconds(1);
  Duration token_takes = std::chrono::milliseconds(10);
  bool fills_secrets = true;
  Duration longest_token = std::chrono::hours(24 * 365);  // of those that are asked for
  std::string pod_becomes = "Running";                    // empty: it stays as it is
  std::function<bool(const Call&)> is_denied;             // null: everything is allowed
  std::set<std::string> held_namespaces;                  // that do not end
  std::vector<std::string> events;                        // messages about every pod
  std::string token;                                      // that calls need; empty: none

 private:
  using Reply = net::HttpReply;
  struct Change {
    std::int64_t version;
    std::string type;
    std::string path;
    boost::json::object object;
  };

  Reply Dispatch(const Call& call);
  Reply Get(const Call& call);
  Reply List(const std::string& collection, const std::string& query);
  Reply Post(const Call& call);
  Reply RequestProject(const Call& call);
  Reply Patch(const Call& call);
  Reply Delete(const Call& call);
  Task<Reply> Watch(const Call& call, const net::HttpSink& sink, Duration stall);
  void StartPod(const std::string& path);
  void EndNamespace(const std::string& path);
  void Note(std::string type, const std::string& path, boost::json::object object);
  void Later(Duration delay, std::function<void()> action);

  Loop& loop_;
  std::int64_t version_ = 1;
  std::int64_t oldest_ = 0;  // that watches may begin at
  bool sends_error_event_ = false;
  int cuts_ = 0;
  int last_uid_ = 0;
  int requested_tokens_ = 0;
  std::vector<Change> changes_;
  WaitList changed_;
  std::deque<Fault> faults_;
  std::vector<Call> calls_;
  std::map<std::string, SteadyTime> made_at_;
  std::set<Clock::TimerId> timers_;
};

// Calls an imposter without a network.
class KubernetesImposterClient : public net::HttpClient {
 public:
  KubernetesImposterClient(Loop& loop, KubernetesImposter& imposter) : loop_(loop), imposter_(imposter) {}
  Task<net::HttpReply> Send(net::HttpCall call) override;

 private:
  Loop& loop_;
  KubernetesImposter& imposter_;
};

}  // namespace nodepool::testing
