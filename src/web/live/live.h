#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/alarm.h"
#include "base/metrics/prometheus.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/lists/recent_answers.h"
#include "web/live/change_log.h"
#include "web/live/event_stream.h"
#include "web/live/record_events.h"
#include "web/live/sampler.h"
#include "web/router.h"

namespace nodepool::web {

// What pages follow: events of records, changes in words, samples. Records become events from the first
// stream on, until nobody has listened for ten minutes.
class Live {
 public:
  // All outlive it. `recent` are the answers that clients load before they follow events.
  Live(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
       std::shared_ptr<RecentAnswers> recent);

  // A stream of the topics. With `last_id`, the id of the last event that the client has seen, it begins with
  // what the client has missed, or with `reset` if that is not known any more. `identify` is needed for
  // leases, and where reading needs a token.
  std::shared_ptr<EventStream> Open(Topics topics, const std::string& last_id,
                                    EventStream::Identify identify = nullptr);

  // Lets each stream find out who its client is by now.
  void Identify() { feed_->news.NotifyAll(); }

  const ChangeLog& changes() const { return changes_; }
  const Sampler& sampler() const { return sampler_; }

 private:
  void Follow();
  void Beat();
  void Changed(const ChangeEntry& change);
  void Sampled(const Sample& sample);

  Loop& loop_;
  std::shared_ptr<RecentAnswers> recent_;
  std::shared_ptr<Feed> feed_;
  RecordEvents records_;
  ChangeLog changes_;
  Sampler sampler_;
  Alarm beat_;
  int lonely_beats_ = 0;  // in succession
  WallTime followed_since_{};
};

// GET /api/v1/events: changes as Server-Sent Events; /api/v1/changes: the latest, in words; /api/v1/samples:
// for charts (http.md 1). `access` outlives them.
std::vector<Endpoint> LiveEndpoints(Loop& loop, std::shared_ptr<Live> live, Access& access);

}  // namespace nodepool::web
