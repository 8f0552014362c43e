#include "drivers/kubernetes/api/cloud.h"

#include <fmt/format.h>

#include <set>

#include "async/deadline.h"
#include "async/task.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;

namespace {

constexpr std::chrono::seconds kWatchTime{300};
// Servers send a bookmark each minute; one that sends nothing for longer may have lost us.
constexpr Duration kLongestSilence = std::chrono::seconds(100);
// A list of so many objects costs little: a single page.
constexpr std::size_t kFewObjects = 500;
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

ObjectCache::ObjectCache(Loop& loop, Random& random, Cluster& cluster, Watched watched)
    : loop_(loop), cluster_(cluster), watched_(std::move(watched)), pauses_(kPauses, random) {}

ObjectCache::~ObjectCache() = default;

bool ObjectCache::is_refused() const { return !is_listed_ && IsRefusedForGood(failure_); }

void ObjectCache::Start(TaskGroup& tasks) {
  if (std::exchange(is_started_, true)) return;
  tasks.Spawn("watch " + watched_.collection, Run());
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
    // What exceeds a bound would do so again at once.
    Duration pause = FailedWith(ended, Verdict::kFail) ? kPauses.max : pauses_.Next();
    co_await loop_.SleepFor(pause);
  }
}

Task<> ObjectCache::ListAndWatch() {
  if (version_.empty()) co_await List();
  co_await Watch();
}

Task<> ObjectCache::List() {
  SteadyTime begun = loop_.SteadyNow();
  ObjectList list = co_await cluster_.List(watched_.collection, watched_.selector);
  std::set<std::string> gone;
  for (const auto& [key, object] : objects_) gone.insert(key);
  for (Object& object : list.objects) {
    std::string key = object.key();
    gone.erase(key);
    Set(key, std::move(object));
  }
  for (const std::string& key : gone) Set(key, std::nullopt);
  version_ = std::move(list.version);
  listed_at_ = begun;
  is_listed_ = true;
  failure_.reset();
  if (!std::exchange(last_cause_, {}).empty())
    logger_.Info("{} of {} is read again", watched_.collection, cluster_.name());
  tried_.NotifyAll();
  NotifyAllOfList();
}

Task<> ObjectCache::Watch() {
  std::string path =
      fmt::format("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}{}{}",
                  watched_.collection, kWatchTime.count(), api::PercentEncoded(version_),
                  watched_.selector.empty() ? "" : "&", watched_.selector);
  const SteadyTime begun = loop_.SteadyNow();
  heard_at_ = begun;
  auto on_event = [this](WatchEvent event) { OnEvent(std::move(event)); };
  Task<> watching = cluster_.Watch(std::move(path), kLongestSilence, on_event);
  Outcome<> ended = co_await Attempt(std::move(watching));
  if (!MayGoOn(ended, begun)) version_.clear();
  if (!ended) ended.error().Rethrow();
}

// Whether the next watch may begin with the last version seen. A server whose data were restored begins again
// with lower ones, and accepts a watch from a higher one in silence until it has reached that.
bool ObjectCache::MayGoOn(const Outcome<>& ended, SteadyTime begun) const {
  // Whatever the server did not like, e.g. that the version is too old (410), a list shows whether it lasts.
  if (api::StatusOf(ended) != 0) return false;
  SteadyTime now = loop_.SteadyNow();
  if (now - heard_at_ >= kLongestSilence) return false;
  bool has_lasted = ended && now - begun >= kWatchTime;
  return has_lasted || objects_.size() > kFewObjects;
}

void ObjectCache::OnEvent(WatchEvent event) {
  using Kind = WatchEvent::Kind;
  heard_at_ = loop_.SteadyNow();
  version_ = std::move(event.version);  // of an ERROR none: usually it is too old (410), and a list helps
  if (event.kind == Kind::kError || event.kind == Kind::kBookmark) return;
  pauses_.Reset();
  std::string key = event.object.key();
  bool is_deleted = event.kind == Kind::kDeleted;
  Set(key, is_deleted ? std::nullopt : std::optional(std::move(event.object)));
  Notify(key, is_deleted);
  if (weight_ > watched_.most) FailAsEndless();
}

// With a list the next watch begins with what there is.
void ObjectCache::FailAsEndless() {
  version_.clear();
  throw Error(Verdict::kFail, fmt::format("there is no end of new objects: {}, of {} KiB in all",
                                          objects_.size(), weight_ >> 10));
}

void ObjectCache::Set(const std::string& key, std::optional<Object> object) {
  auto known = objects_.extract(key);
  if (known) weight_ -= known.mapped().weight;
  const Object* now = nullptr;
  if (object) now = &objects_.emplace(key, std::move(*object)).first->second;
  if (now != nullptr) weight_ += now->weight;
  if (watched_.on_change && (known || now != nullptr))
    watched_.on_change(known ? &known.mapped() : nullptr, now);
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
                fmt::format("{} of {} cannot be watched{}; it is tried again: {}", watched_.collection,
                            cluster_.name(), watched_.without, failure.message()));
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

namespace {

// A project's labels are lost when it is made.
ObjectCache::Watched NamespacesOf(const KubernetesConfig& config) {
  if (config.kind == Kind::kOpenshift) return {kProjects, ""};
  return {kNamespaces, OwnSelector(config)};
}

}  // namespace

std::string OwnSelector(const KubernetesConfig& config) {
  std::string selector = std::string(driver::cloud::kProviderKey) + "=" + config.name.str();
  return "labelSelector=" + driver::cloud::api::PercentEncoded(selector);
}

Watches::Watches(const driver::cloud::AdapterEnvironment& environment, const KubernetesConfig& config,
                 Cluster& cluster)
    : environment_(environment),
      config_(config),
      cluster_(cluster),
      namespaces_(environment.loop, environment.random, cluster, NamespacesOf(config)),
      pods_(environment.loop, environment.random, cluster,
            {kAllPods, OwnSelector(config),
             [this](const Object* before, const Object* now) { SeePod(before, now); }}),
      tasks_(environment.loop, log::Logger("nodepool.driver.kubernetes")) {}

ObjectCache& Watches::Namespaces() {
  Start(namespaces_);
  return namespaces_;
}

ObjectCache& Watches::Pods() {
  Start(pods_);
  return pods_;
}

ObjectCache& Watches::PodsOfPool(const std::string& pool) {
  std::unique_ptr<ObjectCache>& pods = pods_of_pools_[pool];
  if (!pods) {
    pods = NewCache({InNamespace(pool, "pods"), OwnSelector(config_),
                     [this](const Object* before, const Object* now) { SeePod(before, now); }});
  }
  Start(*pods);
  return *pods;
}

std::unique_ptr<ObjectCache> Watches::NewCache(ObjectCache::Watched watched) {
  return std::make_unique<ObjectCache>(environment_.loop, environment_.random, cluster_, std::move(watched));
}

void Watches::SeePod(const Object* before, const Object* now) {
  auto serves = [](const Object* pod) { return pod != nullptr && !pod->is_terminating && !HasEnded(*pod); };
  if (!serves(before) || serves(now)) return;
  bool is_ours =
      deletions_.contains(before->name_space) || deletions_.contains(KeyOf(before->name_space, before->name));
  if (!is_ours) environment_.framework.MachinesTaken();
}

namespace {

std::string NameOf(const KubernetesConfig& config) {
  return config.context ? "context " + *config.context : "the current context";
}

}  // namespace

Cloud::Cloud(driver::cloud::AdapterEnvironment environment_of,
             std::shared_ptr<const KubernetesConfig> config_of, Means means)
    : means_(std::move(means)),
      environment(std::move(environment_of)),
      config(std::move(config_of)),
      access(environment.loop, *means_.runner, means_.environment, means_.read_files),
      cluster(environment.loop, environment.blocking_pool, environment.random, *means_.http, access,
              NameOf(*config), {environment.observer, config->name, config->driver}),
      watches(environment, *config, cluster) {}

}  // namespace nodepool::drivers::kubernetes
