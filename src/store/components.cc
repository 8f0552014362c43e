#include "store/components.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/random.h"
#include "store/paths.h"

namespace nodepool::store {
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
