#include "drivers/kubernetes/api/object_cache.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "async/attempt.h"
#include "async/deadline.h"
#include "base/json_fields.h"
#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr int kWatchSeconds = 300;
// Servers send a bookmark each minute; one that sends nothing for longer may have lost us.
constexpr Duration kLongestSilence = std::chrono::seconds(100);
// A watch that lasted so long, or brought something, has worked: the next one follows at once.
constexpr Duration kGoodWatch = std::chrono::seconds(5);
constexpr Backoff::Settings kPauses{std::chrono::milliseconds(100), std::chrono::seconds(30)};

constexpr int kForbidden = 403;
constexpr int kNotFound = 404;

bool IsRefusedForGood(const std::optional<Failure>& failure) {
  if (!failure) return false;
  int status = api::StatusOf(*failure);
  return status == kForbidden || status == kNotFound;
}

}  // namespace

ObjectCache::ObjectCache(Loop& loop, Random& random, Cluster& cluster, std::string collection,
                         std::string selector)
    : loop_(loop),
      cluster_(cluster),
      collection_(std::move(collection)),
      selector_(std::move(selector)),
      pauses_(kPauses, random) {}

ObjectCache::~ObjectCache() = default;

void ObjectCache::Start(TaskGroup& tasks) {
  if (std::exchange(is_started_, true)) return;
  tasks.Spawn("watch " + collection_, Run());
}

Task<> ObjectCache::WaitForFirstList() {
  while (!is_listed_ && !failure_) co_await tried_.Wait();
  if (!is_listed_) failure_->Rethrow();
}

Task<> ObjectCache::Run() {
  while (true) {
    SteadyTime begun = loop_.SteadyNow();
    Outcome<> ended = co_await Attempt(ListAndWatch());
    if (loop_.SteadyNow() - begun >= kGoodWatch) pauses_.Reset();
    if (!ended) Report(ended.error());
    Duration pause = pauses_.Next();
    co_await loop_.SleepFor(pause);
  }
}

Task<> ObjectCache::ListAndWatch() {
  if (version_.empty()) co_await List();
  co_await Watch();
}

Task<> ObjectCache::List() {
  SteadyTime begun = loop_.SteadyNow();
  ObjectList list = co_await cluster_.List(collection_, selector_);
  objects_.clear();
  for (Object& object : list.objects) {
    std::string key = object.key();
    objects_.insert_or_assign(std::move(key), std::move(object));
  }
  version_ = std::move(list.version);
  listed_at_ = begun;
  is_listed_ = true;
  failure_.reset();
  if (!std::exchange(last_cause_, {}).empty())
    logger_.Info("{} of {} is read again", collection_, cluster_.name());
  tried_.NotifyAll();
  NotifyAllOfList();
}

Task<> ObjectCache::Watch() {
  std::string path = fmt::format(
      "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}{}{}", collection_,
      kWatchSeconds, api::PercentEncoded(version_), selector_.empty() ? "" : "&", selector_);
  auto on_line = [this](std::string_view line) { return OnLine(line); };
  Task<> reading = cluster_.ReadLines(std::move(path), kLongestSilence, on_line);
  Outcome<> ended = co_await Attempt(std::move(reading));
  if (ended) co_return;
  // Whatever the server did not like, e.g. that the version is too old (410), a list shows whether it lasts.
  if (api::StatusOf(ended) != 0) version_.clear();
  ended.error().Rethrow();
}

bool ObjectCache::OnLine(std::string_view line) {
  boost::system::error_code error;
  json::value parsed = json::parse(line, error);
  const json::object* source = error ? nullptr : ObjectIn(parsed, "object");
  if (source == nullptr) return false;
  std::string type = TextIn(parsed.as_object(), "type");
  if (type == "ERROR") {
    // Usually 410: the version is too old. Whatever it is, a list helps.
    version_.clear();
    return true;
  }
  if (const json::object* metadata = ObjectIn(*source, "metadata"))
    version_ = TextIn(*metadata, "resourceVersion");
  if (type == "BOOKMARK") return true;
  pauses_.Reset();
  Apply(type, ReadObject(*source));
  return true;
}

void ObjectCache::Apply(const std::string& type, Object object) {
  std::string key = object.key();
  bool is_deleted = type == "DELETED";
  if (is_deleted) {
    objects_.erase(key);
  } else {
    objects_.insert_or_assign(key, std::move(object));
  }
  Notify(key, is_deleted);
}

void ObjectCache::Notify(const std::string& key, bool is_deleted) {
  auto [begin, end] = followers_.equal_range(key);
  for (auto follower = begin; follower != end; ++follower) {
    if (is_deleted) follower->second->was_gone_ = true;
    follower->second->changed_.Set();
  }
}

void ObjectCache::NotifyAllOfList() {
  for (auto& [key, follower] : followers_) {
    if (follower->since_ < listed_at_ && !objects_.contains(key)) follower->was_gone_ = true;
    follower->changed_.Set();
  }
}

void ObjectCache::Report(const Failure& failure) {
  failure_ = failure;
  tried_.NotifyAll();
  if (IsRefusedForGood(failure_)) {
    for (auto& [key, follower] : followers_) follower->changed_.Set();
  }
  // Once for each cause.
  bool is_new = std::exchange(last_cause_, failure.message()) != failure.message();
  logger_.Write(is_new ? log::Level::kWarning : log::Level::kDebug,
                fmt::format("{} of {} cannot be watched; it is tried again: {}", collection_, cluster_.name(),
                            failure.message()));
}

Follower::Follower(ObjectCache& cache, std::string key)
    : cache_(cache), key_(std::move(key)), since_(cache.loop_.SteadyNow()) {
  place_ = cache_.followers_.emplace(key_, this);
}

Follower::~Follower() { cache_.followers_.erase(place_); }

const Object* Follower::object() const {
  auto found = cache_.objects_.find(key_);
  return found == cache_.objects_.end() ? nullptr : &found->second;
}

Task<> Follower::Change(SteadyTime until) {
  if (IsRefusedForGood(cache_.failure_)) cache_.failure_->Rethrow();
  co_await EndsBy(cache_.loop_, until, "a change of " + key_, changed_.Wait());
  changed_.Reset();
  if (IsRefusedForGood(cache_.failure_)) cache_.failure_->Rethrow();
}

}  // namespace nodepool::drivers::kubernetes
