#include "store/cache/component_registry.h"

#include <algorithm>

#include "async/attempt.h"
#include "async/backoff.h"
#include "base/random.h"
#include "store/paths.h"

namespace nodepool::store {
namespace {

constexpr std::int64_t kOwnModelApi = 0;

}  // namespace

ComponentRegistry::ComponentRegistry(Loop& loop, zk::Client& client)
    : loop_(loop),
      client_(client),
      malformed_(log::Logger("nodepool.ComponentRegistry")),
      tree_(loop, client, std::string(paths::kComponents), *this) {}

ComponentRegistry::~ComponentRegistry() = default;

// A connection or session that is lost at this moment must not make the whole start fail.
Task<> ComponentRegistry::Ensure(std::string directory) {
  SeededRandom random(std::hash<std::string>()(directory));
  Backoff backoff({}, random);
  while (true) {
    Outcome<> ensured = co_await Attempt(zk::EnsurePath(client_, directory));
    if (ensured) co_return;
    bool may_recover = FailedWith(ensured, Verdict::kRetry, Verdict::kLostSession);
    if (!may_recover || client_.state() == zk::SessionState::kClosed) ensured.error().Rethrow();
    co_await loop_.SleepFor(backoff.Next());
  }
}

Task<> ComponentRegistry::Start() {
  for (ComponentKind kind : {ComponentKind::kLauncher, ComponentKind::kBuilder, ComponentKind::kPool}) {
    co_await Ensure(paths::Components(kind));
  }
  tree_.Start();
}

Subscription ComponentRegistry::OnChange(Listener listener) const {
  return listeners_.Add(std::move(listener));
}

std::vector<const Component*> ComponentRegistry::Pools() const {
  std::vector<const Component*> pools;
  for (const auto& [path, component] : components_) {
    if (component.kind == ComponentKind::kPool) pools.push_back(&component);
  }
  return pools;
}

std::int64_t ComponentRegistry::model_api() const {
  std::int64_t min = kOwnModelApi;
  for (const auto& [path, component] : components_) min = std::min(min, component.model_api);
  return min;
}

zk::TreeCache::Interest ComponentRegistry::InterestIn(std::string_view path) const {
  return paths::ParseComponent(path) ? zk::TreeCache::Interest::kData : zk::TreeCache::Interest::kNone;
}

void ComponentRegistry::OnNode(const std::string& path, const zk::NodeData& node) {
  std::optional<ComponentKind> kind = paths::ParseComponent(path);
  if (!kind) return;
  Expected<Component> component = ParseComponent(*kind, node.data);
  if (component) {
    malformed_.Discard(path);
    Replace(path, std::move(*component));
  } else {
    malformed_.Report(path, node.stat, component.error().message());
    Replace(path, std::nullopt);
  }
}

void ComponentRegistry::OnGone(const std::string& path) {
  if (!paths::ParseComponent(path)) return;
  malformed_.Discard(path);
  Replace(path, std::nullopt);
}

void ComponentRegistry::Replace(const std::string& path, std::optional<Component> after) {
  std::string name = paths::Below(paths::kComponents, path);
  std::optional<Component> before;
  if (auto known = components_.extract(name)) before = std::move(known.mapped());
  const Component* now = after ? &components_.emplace(name, std::move(*after)).first->second : nullptr;
  if (before || now != nullptr) listeners_.Notify(name, before ? &*before : nullptr, now);
}

}  // namespace nodepool::store
