#pragma once

#include <bitset>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/subscription.h"
#include "launcher/launcher.h"
#include "net/http/http.h"
#include "store/records.h"

namespace nodepool::web {

// Who may see an event. One about a lease is encoded twice: for its client, whose text has access data, and
// for others who may see the leases of all.
struct Audience {
  std::string client = {};  // whose lease it is about; empty: everybody may see the event
  bool is_client = false;   // for that client alone, else for the others
};

// The client of a stream.
struct Viewer {
  std::string client = {};  // name of its token; empty: none was asked for
  bool sees_all = false;    // leases of other clients, too

  auto operator<=>(const Viewer&) const = default;
};

inline bool MaySee(const Viewer& viewer, const Audience& audience) {
  if (audience.client.empty()) return true;
  bool is_own = viewer.client == audience.client;
  return audience.is_client ? is_own : viewer.sees_all && !is_own;
}

// What an event of the stream is about. Those of records have the names of the resources under /api/v1.
enum class Topic {
  kNodes,
  kRequests,
  kImages,
  kBuilds,
  kUploads,
  kProviders,
  kComponents,
  kJobs,
  kProblems,
  kRunners,
  kRunnerJobs,
  kLeases,
  kChanges,
  kSamples,
  kStatus
};
inline constexpr std::string_view kTopicNames[] = {
    "nodes",    "requests", "images",      "builds", "uploads", "providers", "components", "jobs",
    "problems", "runners",  "runner_jobs", "leases", "changes", "samples",   "status"};

constexpr std::string_view NameOf(Topic topic) { return kTopicNames[static_cast<std::size_t>(topic)]; }

using Topics = std::bitset<std::size(kTopicNames)>;

inline bool Contains(Topics topics, Topic topic) { return topics[static_cast<std::size_t>(topic)]; }

// "nodes,requests"; where it is empty all topics but leases, which not everybody may see. Error(kInvalid)
// names a topic that there is not.
Expected<Topics> ReadTopics(std::string_view names);

// The latest events, as text of a stream of Server-Sent Events. A reader is only a position: the number of
// its next event. So a reader costs nothing while it waits, and what is kept is bounded whatever readers do.
class EventRing {
 public:
  struct Limits {
    std::size_t events = 10'000;
    std::size_t bytes = 16 << 20;
    std::size_t part_bytes = 64 << 10;  // of the answer to one Read(), which has at least one event
  };
  using Position = std::uint64_t;

  // `epoch` distinguishes the ids of this ring from those of a former process.
  explicit EventRing(std::string epoch) : EventRing(std::move(epoch), Limits()) {}
  EventRing(std::string epoch, Limits limits) : epoch_(std::move(epoch)), limits_(limits) {}

  // `json` has no line breaks.
  void Append(Topic topic, std::string_view json, SteadyTime now, Audience audience = {});
  // Drops all events. Positions before remain valid and are answered as lost.
  void Clear();

  // Of the next event.
  Position end() const { return first_ + events_.size(); }
  // Of the first event that is not older than `time`.
  Position Since(SteadyTime time) const;
  // The id of the last event before a position: "<epoch>-<number>".
  std::string IdBefore(Position position) const;
  // The position after the event with this id; nullopt: it is not from this ring, or lost.
  std::optional<Position> After(std::string_view id) const;

  struct Part {
    std::shared_ptr<const std::string> text;  // empty: nothing about the topics
    Position next = 0;
  };
  // The events about the topics from a position on that the viewer may see. The text is shared by all who
  // read the same, and with the ring where it is one event, so that slow readers hold little. nullopt: events
  // are lost.
  std::optional<Part> Read(Position from, Topics topics, const Viewer& viewer = {});

 private:
  struct Event {
    Topic topic;
    SteadyTime at;
    Audience audience;
    std::shared_ptr<const std::string> text;
  };

  Part Join(Position from, Topics topics, const Viewer& viewer) const;

  std::string epoch_;
  Limits limits_;
  std::deque<Event> events_;
  Position first_ = 1;  // of `events_`
  std::size_t bytes_ = 0;
  std::map<std::tuple<Position, unsigned long, Viewer>, Part> recent_;  // answers, until the next event
};

// What event streams read from.
struct Feed {
  EventRing ring;
  WaitList news;            // notified after events and beats
  std::uint64_t beats = 0;  // grows now and then: each stream sends the event `beat` if it has nothing else
  std::size_t streams = 0;  // that are open
};

// The stream of one client: a greeting, then the events of its topics. If it falls behind what the ring
// keeps, it gets the event `reset` in place of what is lost.
class EventStream : public net::BodyStream {
 public:
  // Who the client is at the moment, since tokens are withdrawn and changed; nullopt: the stream is to end.
  using Identify = std::function<std::optional<Viewer>()>;

  // `greeting` is sent first, then the events from the position on. Without `identify` only those that
  // everybody may see.
  EventStream(std::shared_ptr<Feed> feed, Topics topics, EventRing::Position from, std::string greeting,
              Identify identify);
  ~EventStream() override { --feed_->streams; }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  Task<std::shared_ptr<const std::string>> Next() override;

 private:
  // What there is to send now; null: nothing.
  std::shared_ptr<const std::string> Take();

  std::shared_ptr<Feed> feed_;
  Topics topics_;
  Identify identify_;
  Viewer viewer_;
  EventRing::Position position_;
  std::uint64_t beats_;
  std::shared_ptr<const std::string> greeting_;
};

// The event that makes a client load everything again. Its id is the last one before the position.
std::string ResetEvent(const EventRing& ring, EventRing::Position position);
// The event by which a client sees that the server lives: a comment would be invisible to a page. Its id
// moves the client on past events of other topics.
std::string BeatEvent(const EventRing& ring, EventRing::Position position);

// The entries of a small resource as clients know them. What has changed is found by comparison.
class Published {
 public:
  using Entries = std::map<std::string, std::string>;  // JSON by key
  // `json` is null for an entry that is gone.
  using See = std::function<void(const std::string& key, const std::string* json)>;

  // Shows what differs from the entries before.
  void Replace(Entries entries, const See& see);
  // The same for one entry; without `json` it is gone.
  void Set(const std::string& key, std::optional<std::string> json, const See& see);

 private:
  Entries entries_;
};

// Entries as /api/v1 shows them, with times in place of ages, so that they need not be sent again each
// second. nullopt: there is no such record. Keys of lists: parts of the name, joined with slashes (http.md
// PAGE-3).

std::optional<std::string> NodeEntry(const launcher::Launcher& launcher, const NodeId& id);
std::optional<std::string> RequestEntry(const launcher::Launcher& launcher, const RequestId& id);
std::optional<std::string> EntryOfImage(const launcher::Launcher& launcher, const ImageName& name);
// As the lease's client sees it, or as others do.
std::string LeaseEntryFor(const launcher::Launcher& launcher, const store::StoredLease& lease,
                          bool is_client);
std::optional<std::string> BuildEntry(const launcher::Launcher& launcher, const store::BuildKey& key);
std::optional<std::string> UploadEntry(const launcher::Launcher& launcher, const store::UploadKey& key);
// What names a build or upload that is gone.
std::string PathOf(const store::BuildKey& key);
std::string PathOf(const store::UploadKey& key);
// Without `next_start`, which changes all the time.
Published::Entries ProviderEntries(const launcher::Launcher& launcher);
Published::Entries ComponentEntries(const store::Caches& records);
Published::Entries JobEntries(const store::Caches& records);
Published::Entries RunnerEntries(const launcher::Launcher& launcher);
Published::Entries RunnerJobEntries(const launcher::Launcher& launcher);
// While the records are complete.
Published::Entries ProblemEntries(const launcher::Launcher& launcher);

// When the request was made, by its client's clock or else by ZooKeeper's.
inline WallTime CreationOf(const store::StoredRequest& request) {
  return request.record.created_time.value_or(request.revision.created);
}

// Makes events of changed records, once however many clients listen; of leases twice.
//
// A changed record is encoded once in 50 ms at most. What no cache reports, or what is made from many
// records, is compared twice a second while somebody listens: providers, components, jobs, why requests wait;
// problems every two seconds.
class RecordEvents {
 public:
  // All outlive it.
  RecordEvents(Loop& loop, const launcher::Launcher& launcher, Feed& feed);

  // From the start to the stop the feed has an event for every change.
  void Start();
  void Stop();
  bool is_started() const { return !subscriptions_.empty(); }

  // Streams are notified of what is in the feed within 50 ms.
  void NotifySoon() { Wake(); }

  // {"is_complete", "is_ready", "fault"}: whether the records are known and the launcher can work.
  std::string Status() const;

 private:
  void Wake();
  void Flush();
  void Survey();
  void EncodeNodes();
  void EncodeRequests();
  void EncodeImages();
  void EncodeBuilds();
  void EncodeUploads();
  void EncodeLeases();
  void LeaseChanged(const store::StoredLease* lease);
  void CompareSmallResources(bool is_reported);
  void CompareProblems(bool is_reported);
  void CompareWaits();
  // Appends an event; without `json` the entry is gone.
  void Report(Topic topic, const std::string& key, const std::string* json);
  Published::See Reporter(Topic topic, bool is_reported);

  Loop& loop_;
  const launcher::Launcher& launcher_;
  Feed& feed_;
  // Changed since the last flush.
  std::set<NodeId> nodes_;
  std::set<RequestId> requests_;
  std::set<ImageName> images_;
  std::set<store::BuildKey> builds_;
  std::set<store::UploadKey> uploads_;
  std::map<LeaseId, std::string> leases_;   // with the names of their clients
  std::map<RequestId, std::size_t> waits_;  // a hash of what was last compared
  std::map<Topic, Published> published_;    // small resources
  SteadyTime last_flush_{};
  SteadyTime next_problems_{};
  Alarm flush_;
  Alarm survey_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::web
