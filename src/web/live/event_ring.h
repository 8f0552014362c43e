#pragma once

#include <bitset>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/clock.h"
#include "base/error.h"

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

}  // namespace nodepool::web
