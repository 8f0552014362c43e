#include "web/live/live.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::web {
namespace {

constexpr Duration kBeat = std::chrono::seconds(10);
constexpr int kLonelyBeats = 60;
// A client loads its lists at about the same time, and they may be as old as an answer that is given again.
constexpr Duration kOverlap = std::chrono::seconds(5);

std::string EpochAt(WallTime now) {
  return fmt::format("{:x}", std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count());
}

}  // namespace

Live::Live(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
           std::shared_ptr<RecentAnswers> recent)
    : loop_(loop),
      recent_(std::move(recent)),
      feed_(std::make_shared<Feed>(EventRing(EpochAt(loop.Now())))),
      records_(loop, launcher, *feed_),
      changes_(loop, launcher, [this](const ChangeEntry& change) { Changed(change); }),
      sampler_(loop, launcher, prometheus, [this](const Sample& sample) { Sampled(sample); }),
      beat_(loop, [this] { Beat(); }) {}

void Live::Follow() {
  lonely_beats_ = 0;
  if (records_.is_started()) return;
  recent_->Clear();
  records_.Start();
  followed_since_ = loop_.Now();
  beat_.SetFor(loop_.SteadyNow() + kBeat);
}

std::shared_ptr<EventStream> Live::Open(Topics topics, const std::string& last_id,
                                        EventStream::Identify identify) {
  Follow();
  const EventRing& ring = feed_->ring;
  std::optional<EventRing::Position> from = ring.After(last_id);
  EventRing::Position begin =
      from.value_or(last_id.empty() ? ring.Since(loop_.SteadyNow() - kOverlap) : ring.end());
  WallTime now = loop_.Now();
  std::string greeting = fmt::format(
      "retry: 1000\nid: {}\nevent: hello\ndata: "
      "{{\"now\":{:.3f},\"complete_since\":{:.3f},\"status\":{}}}\n\n",
      ring.IdBefore(begin), ToSeconds(now), ToSeconds(std::max(now - kOverlap, followed_since_)),
      records_.Status());
  if (!last_id.empty() && !from) greeting += ResetEvent(ring, begin);
  return std::make_shared<EventStream>(feed_, topics, begin, std::move(greeting), std::move(identify));
}

void Live::Beat() {
  lonely_beats_ = feed_->streams == 0 ? lonely_beats_ + 1 : 0;
  if (lonely_beats_ >= kLonelyBeats) {
    records_.Stop();
    feed_->ring.Clear();
    return;
  }
  ++feed_->beats;
  feed_->news.NotifyAll();
  beat_.SetFor(loop_.SteadyNow() + kBeat);
}

void Live::Changed(const ChangeEntry& change) {
  if (!records_.is_started()) return;
  feed_->ring.Append(Topic::kChanges, ChangeFields().WithTimes(change), loop_.SteadyNow());
  records_.NotifySoon();
}

void Live::Sampled(const Sample& sample) {
  if (!records_.is_started()) return;
  feed_->ring.Append(Topic::kSamples, SampleFields().WithTimes(sample), loop_.SteadyNow());
  feed_->news.NotifyAll();
}

}  // namespace nodepool::web
