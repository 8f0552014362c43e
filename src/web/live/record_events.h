#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "async/alarm.h"
#include "base/subscription.h"
#include "launcher/launcher.h"
#include "web/live/entries.h"
#include "web/live/event_stream.h"

namespace nodepool::web {

// Makes events of changed records, once however many clients listen; of leases twice (event_ring.h).
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
