#include "store/unlocked_records.h"

#include <fmt/format.h>

#include "async/backoff.h"
#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "store/record_kinds.h"

namespace nodepool::store {

Task<> ProviderPauses::Pause(ProviderName provider, ProviderPause pause) {
  std::string path = paths::ProviderPause(provider);
  std::string data = ToJson(pause);
  auto attempt = [&] { return Write(path, data); };
  co_await tree_.Repeat<void>(attempt);
}

Task<> ProviderPauses::Write(std::string path, std::string data) {
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, data);
  if (written) co_return;
  if (written.error() == zk::Code::kNoNode) {
    co_await zk::EnsurePath(tree_.client(), std::string(paths::kProviderPauses));
    zk::Result<zk::Created> created = co_await tree_.client().Create(path, data, zk::CreateMode::kPersistent);
    if (created) co_return;
    // Another process was faster: the next attempt replaces its record.
    if (created.error() == zk::Code::kNodeExists)
      throw Error(Verdict::kRetry, fmt::format("creating {}: it exists", path));
    throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(created.error())));
  }
  throw Error(Verdict::kFail, fmt::format("writing {}: {}", path, zk::ToString(written.error())));
}

Task<bool> ProviderPauses::Unpause(ProviderName provider) {
  std::string path = paths::ProviderPause(provider);
  zk::Result<zk::NodeData> found = co_await tree_.Get(path);
  if (!found) co_return false;
  co_await tree_.Delete(path);
  co_return true;
}

namespace {

// Another client was faster: the next attempt reads its record.
void ThrowUnless(bool is_done, const std::string& path, zk::Code code) {
  if (is_done) return;
  bool is_lost_race =
      code == zk::Code::kBadVersion || code == zk::Code::kNoNode || code == zk::Code::kNodeExists;
  throw Error(is_lost_race ? Verdict::kRetry : Verdict::kFail,
              fmt::format("writing {}: {}", path, zk::ToString(code)));
}

std::optional<Breaker> RecordIn(const zk::Result<zk::NodeData>& found) {
  if (!found) return std::nullopt;
  Expected<Breaker> parsed = ParseBreaker(found->data);
  if (!parsed) return std::nullopt;
  return std::move(*parsed);
}

}  // namespace

Task<std::optional<Breaker>> Breakers::Update(BreakerKey key, Change change) {
  std::function<Task<std::optional<Breaker>>()> attempt = [this, &key, &change] {
    return TryUpdate(key, change);
  };
  co_return co_await tree_.Repeat<std::optional<Breaker>>(attempt);
}

Task<std::optional<Breaker>> Breakers::TryUpdate(BreakerKey key, Change change) {
  std::string path = paths::Breaker(key);
  zk::Result<zk::NodeData> found = co_await tree_.Get(path);
  std::optional<Breaker> before = RecordIn(found);
  std::optional<Breaker> after = change(before);
  if (!after) {
    if (found) co_await Remove(path, found->stat.version);
    co_return std::nullopt;
  }
  std::string data = ToJson(*after);
  bool is_same = before && ToJson(*before) == data;
  if (is_same) co_return after;
  if (found) {
    co_await Write(path, data, found->stat.version);
  } else {
    co_await Create(path, data);
  }
  co_return after;
}

Task<> Breakers::Write(std::string path, std::string data, std::int32_t version) {
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, std::move(data), version);
  ThrowUnless(written.has_value(), path, written ? zk::Code::kOk : written.error());
}

Task<> Breakers::Remove(std::string path, std::int32_t version) {
  zk::Result<> removed = co_await tree_.client().Delete(path, version);
  bool is_gone = removed || removed.error() == zk::Code::kNoNode;
  ThrowUnless(is_gone, path, removed ? zk::Code::kOk : removed.error());
}

Task<> Breakers::Create(std::string path, std::string data) {
  co_await zk::EnsurePath(tree_.client(), std::string(paths::kBreakers));
  zk::Result<zk::Created> created =
      co_await tree_.client().Create(path, std::move(data), zk::CreateMode::kPersistent);
  ThrowUnless(created.has_value(), path, created ? zk::Code::kOk : created.error());
}

Task<JobId> Jobs::CreateRule(JobRule rule) {
  std::string path = fmt::format("{}/", paths::kJobs);
  std::string created =
      co_await tree_.CreateSequential(std::move(path), ToJson(rule), zk::CreateMode::kPersistentSequential);
  co_return JobId(zk::BaseName(created));
}

Task<bool> Jobs::DeleteRule(JobId id) {
  std::string path = paths::JobRule(id);
  if (!paths::ParseBelowJobs(path).rule) co_return false;
  zk::Result<zk::NodeData> rule = co_await tree_.Get(path);
  if (!rule) co_return false;
  co_await tree_.Delete(path);
  co_return true;
}

// An attempt whose answer was lost makes the next one outdated; then the record exists.
Task<NoteResult> Jobs::AddHoldNote(NodeId node, HoldNote note, std::int32_t seen_version) {
  std::string directory(paths::kHoldNotes);
  if (seen_version < 0) {
    co_await tree_.Ensure(directory);
    co_return NoteResult::kOutdated;
  }
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{directory, "", seen_version});
  ops.emplace_back(zk::CreateOp{paths::HoldNote(node), ToJson(note), zk::CreateMode::kPersistent});
  auto attempt = [&] { return tree_.client().Multi(ops); };
  zk::MultiResult result = co_await tree_.Repeat<zk::MultiResult>(attempt);
  if (result.ok()) co_return NoteResult::kDone;
  co_return result.failed == 1 ? NoteResult::kThere : NoteResult::kOutdated;
}

Task<> Jobs::RemoveHoldNote(NodeId node) { co_await tree_.Delete(paths::HoldNote(node)); }

// Beside Nodepool's other own locks: other programs know only their own entries of
// /nodepool/elections.
zk::Election Jobs::Election(std::string identifier) {
  return tree_.Election(paths::NamedLock("job-events"), std::move(identifier));
}

namespace {

constexpr std::size_t kIdentityDigits = 6;

// Another one has changed the record meanwhile, or an answer was lost.
Error RecordFault(std::string_view what, const std::string& path, zk::Code code) {
  bool may_go_on =
      code == zk::Code::kNodeExists || code == zk::Code::kBadVersion || code == zk::Code::kNoNode;
  return {may_go_on ? Verdict::kRetry : Verdict::kFail,
          fmt::format("{} {}: {}", what, path, zk::ToString(code))};
}

std::string IdentityPath() { return fmt::format("{}/identity", paths::kRunners); }

}  // namespace

Task<> Runners::WriteRun(RunId id, RunnerRun run) { return Write(paths::RunnerRun(id), ToJson(run)); }

Task<> Runners::WriteSet(RunnerSetKey key, RunnerSetRecord record) {
  return Write(paths::RunnerSet(key), ToJson(record));
}

Task<> Runners::DeleteRun(RunId id) { return tree_.Delete(paths::RunnerRun(id)); }

Task<> Runners::DeleteSet(RunnerSetKey key) { return tree_.Delete(paths::RunnerSet(key)); }

Task<> Runners::Write(std::string path, std::string data) {
  auto attempt = [&] { return WriteOnce(path, data); };
  co_await tree_.Repeat<void>(attempt);
}

Task<> Runners::WriteOnce(std::string path, std::string data) {
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, data);
  if (written) co_return;
  if (written.error() != zk::Code::kNoNode)
    throw Error(Verdict::kFail, fmt::format("writing {}: {}", path, zk::ToString(written.error())));
  co_await zk::EnsurePath(tree_.client(), zk::ParentPath(path));
  zk::Result<zk::Created> created = co_await tree_.client().Create(path, data, zk::CreateMode::kPersistent);
  if (!created) throw RecordFault("creating", path, created.error());
}

Task<> Runners::NoteJob(WorkflowJob job) {
  std::string path = paths::HookedJob({job.service, job.job.request});
  auto attempt = [&] { return NoteJobOnce(path, job); };
  co_await tree_.Repeat<void>(attempt);
}

// Several web servers may get deliveries of one job at a time: what changed since it was read is read again.
Task<> Runners::NoteJobOnce(std::string path, const WorkflowJob& job) {
  zk::Result<zk::NodeData> found = co_await tree_.client().Get(path);
  if (!found) {
    co_await zk::EnsurePath(tree_.client(), zk::ParentPath(path));
    zk::Result<zk::Created> created =
        co_await tree_.client().Create(path, ToJson(job), zk::CreateMode::kPersistent);
    if (!created) throw RecordFault("creating", path, created.error());
    co_return;
  }
  WorkflowJob known = ParseWorkflowJob(found->data).value_or(WorkflowJob());
  if (!Advance(known, job)) co_return;
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, ToJson(known), found->stat.version);
  if (!written) throw RecordFault("writing", path, written.error());
}

Task<> Runners::DeleteJob(HookedJobKey key) { return tree_.Delete(paths::HookedJob(key)); }

Task<> Runners::DeleteJobs(std::string service) { return tree_.DeleteAll(paths::HookedJobs(service)); }

zk::Election Runners::Election(const RunnerSetKey& key, std::string identifier) {
  return tree_.Election(paths::RunnerElection(key), std::move(identifier));
}

Task<std::string> Runners::Identity() {
  std::string made = tree_.random().UuidHex().substr(0, kIdentityDigits);
  co_await tree_.Ensure(std::string(paths::kRunners));
  auto attempt = [&] { return tree_.client().Create(IdentityPath(), made, zk::CreateMode::kPersistent); };
  co_await tree_.Repeat<zk::Result<zk::Created>>(attempt);
  zk::Result<zk::NodeData> found = co_await tree_.Get(IdentityPath());
  if (!found) throw Error(Verdict::kFail, fmt::format("{} cannot be read", IdentityPath()));
  if (found->data.size() != kIdentityDigits ||
      found->data.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error(Verdict::kInvalid, fmt::format("{} does not hold 6 hex digits; delete it", IdentityPath()));
  co_return found->data;
}

namespace {

// A connection or session that is lost at this moment must not make the whole start fail.
Task<> EnsureDirectory(Loop& loop, zk::Client& client, std::string directory) {
  SeededRandom random(std::hash<std::string>()(directory));
  Backoff backoff({}, random);
  while (true) {
    Outcome<> ensured = co_await Attempt(zk::EnsurePath(client, directory));
    if (ensured) co_return;
    bool may_recover = FailedWith(ensured, Verdict::kRetry, Verdict::kLostSession);
    if (!may_recover || client.state() == zk::SessionState::kClosed) ensured.error().Rethrow();
    co_await loop.SleepFor(backoff.Next());
  }
}

}  // namespace

Task<std::vector<Component>> Components::List(ComponentKind kind) {
  std::vector<Component> components;
  std::vector<std::string> names = co_await tree_.Children(paths::Components(kind));
  for (const std::string& name : names) {
    zk::Result<zk::NodeData> node = co_await tree_.Get(paths::Components(kind) + "/" + name);
    if (!node) continue;
    Expected<Component> component = ParseComponent(kind, node->data);
    if (component) components.push_back(std::move(*component));
  }
  co_return components;
}

zk::Election Components::StatsElection(std::string identifier) {
  return tree_.Election(fmt::format("{}/stats", paths::kElections), std::move(identifier));
}

Task<> EnsureComponentDirectories(Loop& loop, zk::Client& client) {
  for (ComponentKind kind : {ComponentKind::kLauncher, ComponentKind::kBuilder, ComponentKind::kPool}) {
    co_await EnsureDirectory(loop, client, paths::Components(kind));
  }
}

// One task keeps the stored entry equal to the wanted content.
struct ComponentEntry::Impl {
  Impl(Loop& loop, zk::Client& client, Component content)
      : loop(loop),
        client(client),
        logger("nodepool.Component"),
        content(std::move(content)),
        tasks(loop, logger),
        session_listener(client.OnSession([this](zk::SessionState) { changed.NotifyAll(); })) {}

  bool IsRegistered() const { return !znode.empty() && session == client.session(); }
  bool IsUpToDate() const { return IsRegistered() && written == ToJson(content); }

  Task<> Follow();
  Task<> Write();
  Task<> Create();
  Task<> Withdraw();
  Task<> DeleteOwn();
  Task<bool> FindOwn(std::string data);
  void Stands(std::string path, std::int32_t its_version, std::string data);

  Loop& loop;
  zk::Client& client;
  log::Logger logger;
  Component content;
  std::string path;          // below the components directory
  std::string znode;         // absolute; empty: not registered
  zk::Session session;       // in which the znode was made
  std::int32_t version = 0;  // of the znode's data
  std::string written;       // the znode's data; empty: unknown
  std::string attempted;     // what a creation whose answer was lost may have written
  WaitList changed;
  Event registered;
  TaskGroup tasks;
  Subscription session_listener;
};

Task<> ComponentEntry::Impl::Follow() {
  // Differs between components, so that they do not reconnect at the same moment.
  SeededRandom random(std::hash<std::string>()(content.id.value + content.hostname));
  Backoff backoff({}, random);
  for (;;) {
    while (client.state() != zk::SessionState::kConnected || IsUpToDate()) co_await changed.Wait();
    Outcome<> outcome = co_await Attempt(Write());
    if (outcome) {
      backoff.Reset();
      continue;
    }
    if (!FailedWith(outcome, Verdict::kRetry, Verdict::kLostSession)) {
      logger.Error("Announcing the component {}: {}", content.hostname, outcome.error().message());
    }
    co_await loop.SleepFor(backoff.Next());
  }
}

Task<> ComponentEntry::Impl::Write() {
  if (!IsRegistered()) {
    co_await Create();
    co_return;
  }
  std::string data = ToJson(content);
  // Without an answer it is unknown what is stored.
  written.clear();
  zk::Result<zk::Stat> set = co_await client.Set(znode, data, version);
  if (set) {
    Stands(znode, set->version, std::move(data));
    co_return;
  }
  // Written by an attempt whose answer was lost or by a stranger, or deleted by one.
  zk::Result<zk::Stat> now = co_await client.Exists(znode);
  if (now) {
    version = now->version;
  } else {
    znode.clear();
  }
}

Task<> ComponentEntry::Impl::Create() {
  // The entry of an earlier session is deleted.
  znode.clear();
  path.clear();
  session = client.session();
  if (!attempted.empty()) {
    bool is_found = co_await FindOwn(attempted);
    if (is_found) co_return;
  }
  std::string data = ToJson(content);
  std::string prefix = fmt::format("{}/{}", paths::Components(content.kind), content.hostname);
  attempted = data;
  zk::Result<zk::Created> created =
      co_await zk::CreateWithParents(client, std::move(prefix), data, zk::CreateMode::kEphemeralSequential);
  attempted.clear();
  if (!created) {
    throw Error(Verdict::kFail, fmt::format("the server refused: {}", zk::ToString(created.error())));
  }
  // Otherwise the session was lost right after it.
  session = client.session();
  if (created->stat.ephemeral_owner == session.id) Stands(created->path, 0, std::move(data));
}

Task<bool> ComponentEntry::Impl::FindOwn(std::string data) {
  std::string directory = paths::Components(content.kind);
  co_await client.Sync(directory);
  zk::Result<zk::Children> children = co_await client.GetChildren(directory);
  if (!children) co_return false;
  for (const std::string& name : children->names) {
    if (!name.starts_with(content.hostname)) continue;
    std::string candidate = directory + "/" + name;
    zk::Result<zk::NodeData> read = co_await client.Get(candidate);
    if (!read || read->stat.ephemeral_owner != client.session().id || read->data != data) continue;
    Stands(candidate, read->stat.version, data);
    co_return true;
  }
  co_return false;
}

void ComponentEntry::Impl::Stands(std::string path_of_znode, std::int32_t its_version, std::string data) {
  znode = std::move(path_of_znode);
  path = paths::Below(paths::kComponents, znode);
  version = its_version;
  written = std::move(data);
  registered.Set();
}

ComponentEntry::ComponentEntry(Loop& loop, zk::Client& client, Component content)
    : impl_(std::make_unique<Impl>(loop, client, std::move(content))) {}

ComponentEntry::~ComponentEntry() = default;

Task<> ComponentEntry::Register() {
  if (impl_->tasks.size() == 0) impl_->tasks.Spawn("component entry", impl_->Follow());
  co_await impl_->registered.Wait();
}

void ComponentEntry::Update(Component content) {
  impl_->content = std::move(content);
  impl_->changed.NotifyAll();
}

// Deletes the znode, or the one that an interrupted creation may have made.
Task<> ComponentEntry::Impl::DeleteOwn() {
  if (znode.empty()) co_await FindOwn(attempted);
  attempted.clear();
  if (!znode.empty()) co_await client.Delete(znode);
  znode.clear();
}

Task<> ComponentEntry::Impl::Withdraw() {
  SeededRandom random(std::hash<std::string>()(znode));
  Backoff backoff({}, random);
  while (session == client.session() && !(znode.empty() && attempted.empty())) {
    path.clear();
    Outcome<> deleted = co_await Attempt(DeleteOwn());
    if (deleted) continue;
    if (!FailedWith(deleted, Verdict::kRetry)) {
      logger.Warning("The component {} could not be deleted: {}", content.hostname,
                     deleted.error().message());
      break;
    }
    co_await loop.SleepFor(backoff.Next());
  }
  path.clear();
}

Task<> ComponentEntry::Unregister() {
  co_await impl_->tasks.Stop();
  impl_->registered.Set();
  co_await impl_->Withdraw();
}

const std::string& ComponentEntry::path() const { return impl_->path; }
const Component& ComponentEntry::content() const { return impl_->content; }

}  // namespace nodepool::store
