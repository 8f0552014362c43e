#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/deadline.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/subscription.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/api/open_api.h"
#include "web/lists/recent_answers.h"
#include "web/live/change_log.h"
#include "web/live/events.h"
#include "web/router.h"

namespace nodepool::web {

// How long something took, of everything that ended in an interval; in seconds.
struct Percentiles {
  std::size_t count = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};
// The nearest rank; zeros of nothing.
Percentiles PercentilesOf(std::vector<double> seconds);

// Launches that have ended.
struct Launches {
  int ready = 0;
  int failed = 0;
  int errors = 0;  // attempts of this launcher that failed, also those of launches that succeeded later
};

using CountsByState = std::map<std::string_view, std::size_t>;

// What is true at one time.
struct Level {
  CountsByState nodes;
  std::map<ProviderName, CountsByState> nodes_by_provider;
  std::map<ProviderName, double> launch_errors;  // since the launcher started; grows
  std::size_t requests_waiting = 0;
  double api_calls = 0;     // of clouds, since the launcher started; grows
  double api_failures = 0;  // those without an answer
};

// An interval: the level at its end, and what happened in it.
struct Sample {
  WallTime at{};  // the end
  Level level;
  Percentiles waits;     // of requests, from their creation until they were fulfilled
  Percentiles launches;  // of nodes, until they were ready
  std::map<ProviderName, Launches> by_provider;
  double api_calls = 0;
  double api_failures = 0;
};
const FieldTable<Sample>& SampleFields();

// Samples of intervals of one length, the latest of them. Bounded: of an interval's times the first 2,000
// count, and 100 providers.
class SampleSeries {
 public:
  explicit SampleSeries(std::size_t capacity) : capacity_(capacity) {}

  void AddWait(Duration took);
  void AddLaunch(const ProviderName& provider, Duration took);
  void AddFailedLaunch(const ProviderName& provider);
  // Ends the interval and begins the next.
  const Sample& Close(WallTime now, Level level);

  const std::deque<Sample>& samples() const { return samples_; }  // the oldest first

 private:
  Launches* Of(const ProviderName& provider);
  void CountErrors(const std::map<ProviderName, double>& now);

  std::size_t capacity_;
  std::deque<Sample> samples_;
  std::vector<double> waits_;  // of the interval that is open; the same for the next two
  std::vector<double> launches_;
  std::map<ProviderName, Launches> by_provider_;
  std::map<ProviderName, double> launch_errors_;  // at its beginning; the same for the next two
  double api_calls_ = 0;
  double api_failures_ = 0;
};

// Samples of the cluster for charts: one for each ten seconds of the last hour, one for each minute of the
// last day.
class Sampler {
 public:
  // `added` is called for each sample of ten seconds. All outlive it.
  Sampler(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
          std::function<void(const Sample&)> added);

  const SampleSeries& hour() const { return hour_; }
  const SampleSeries& day() const { return day_; }

 private:
  void Tick();
  void Count(const Node* node, std::ptrdiff_t by);
  void NodeChanged(const Node* before, const Node* after);
  void RequestChanged(const store::StoredRequest* before, const store::StoredRequest& after);
  Level Now() const;

  Loop& loop_;
  const launcher::Launcher& launcher_;
  const metrics::Prometheus& prometheus_;
  std::function<void(const Sample&)> added_;
  std::map<ProviderName, CountsByState> nodes_by_provider_;  // without zeros
  SampleSeries hour_;
  SampleSeries day_;
  SteadyTime next_;
  int ticks_ = 0;
  Alarm tick_;
  std::vector<Subscription> subscriptions_;
};

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
