#include "store/cache/cached_records.h"

#include <utility>

#include "base/text.h"

namespace nodepool::store {

using Part = paths::BelowImages::Part;

namespace {

LabelName FirstLabel(const Node& node) { return node.type.empty() ? LabelName() : node.type.front(); }

}  // namespace

std::optional<RequestId> RequestOf(const StoredNode& node) {
  const RequestId& request = node.record.allocated_to;
  return request.empty() ? std::nullopt : std::optional(request);
}

std::optional<std::string> TenantOf(const StoredNode& node) {
  return node.record.resources ? node.record.tenant_name : std::nullopt;
}

std::set<std::string> NamesOf(const StoredNode& node) {
  const Node& record = node.record;
  std::set<std::string> names;
  if (record.hostname) names = {*record.hostname, record.hostname->substr(0, record.hostname->find('.'))};
  if (record.external_id.is_string()) names.emplace(record.external_id.get_string());
  names.erase("");
  return names;
}

std::set<LabelName> FreeLabels(const StoredNode& node) {
  if (!node.record.is_free()) return {};
  return {node.record.type.begin(), node.record.type.end()};
}

void ProviderUse::Add(const StoredNode& node) {
  PoolUse& use = pools[node.record.pool];
  ++use.nodes;
  if (node.record.resources) {
    use.used.Add(*node.record.resources);
    used.Add(*node.record.resources);
  } else {
    ++unknown[node.record.pool][FirstLabel(node.record)];
  }
}

void ProviderUse::Remove(const StoredNode& node) {
  auto pool = pools.find(node.record.pool);
  PoolUse& use = pool->second;
  if (node.record.resources) {
    use.used.Subtract(*node.record.resources);
    used.Subtract(*node.record.resources);
  } else {
    auto labels = unknown.find(node.record.pool);
    auto label = labels->second.find(FirstLabel(node.record));
    if (--label->second == 0) labels->second.erase(label);
    if (labels->second.empty()) unknown.erase(labels);
  }
  if (--use.nodes == 0) pools.erase(pool);
}

namespace {

// Copies of all of them would make the work for each change grow with their number.
Contenders FirstOf(const Contenders& contenders) {
  return contenders.empty() ? Contenders() : Contenders{*contenders.begin()};
}

}  // namespace

const std::set<NodeId>& NodeCache::FreeNodes(const PoolKey& pool, const LabelName& label) const {
  return free_.EntryOf({pool, label});
}

std::set<NodeCache::PoolLabel> NodeCache::FreePlaces(const StoredNode& node) const {
  std::set<PoolLabel> places;
  if (aside_.contains(node.id)) return places;
  for (const LabelName& label : FreeLabels(node)) {
    places.emplace(PoolKey{node.record.provider, node.record.pool}, label);
  }
  return places;
}

void NodeCache::SetAside(const NodeId& id) {
  if (const StoredNode* node = Find(id)) free_.Remove(id, *node);
  aside_.insert(id);
}

void NodeCache::PutBack(const NodeId& id) {
  aside_.erase(id);
  if (const StoredNode* node = Find(id)) free_.Add(id, *node);
}

std::size_t NodeCache::FreeCount(const LabelName& label) const { return free_count_.EntryOf(label).count; }

const FewNodes& NodeCache::OfRequest(const RequestId& request) const { return by_request_.EntryOf(request); }

const std::set<NodeId>& NodeCache::OfProvider(const ProviderName& provider) const {
  return by_provider_.EntryOf(provider);
}

const std::set<NodeId>& NodeCache::InState(NodeState state) const { return by_state_.EntryOf(state); }

const std::set<NodeId>& NodeCache::Named(const std::string& name) const { return by_name_.EntryOf(name); }

const std::map<std::string, std::set<NodeId>>& NodeCache::HeldByJob() const { return held_by_job_.entries(); }

const std::set<NodeId>& NodeCache::HeldBy(const std::string& client) const {
  return held_by_client_.EntryOf(client);
}

const Resources& NodeCache::UsedBy(const PoolKey& pool) const {
  return FindOrEmpty(PoolsWithNodes(pool.provider), pool.pool).used.total();
}

const Resources& NodeCache::UsedBy(const ProviderName& provider) const {
  return use_.EntryOf(provider).used.total();
}

const Resources& NodeCache::UsedByTenant(const std::string& tenant) const {
  return use_by_tenant_.EntryOf(tenant).used.total();
}

const std::map<LabelName, int>& NodeCache::WithoutResources(const PoolKey& pool) const {
  return FindOrEmpty(WithoutResources(pool.provider), pool.pool);
}

const std::map<PoolName, std::map<LabelName, int>>& NodeCache::WithoutResources(
    const ProviderName& provider) const {
  return use_.EntryOf(provider).unknown;
}

const std::map<PoolName, PoolUse>& NodeCache::PoolsWithNodes(const ProviderName& provider) const {
  return use_.EntryOf(provider).pools;
}

std::vector<ProviderName> NodeCache::ProvidersWithNodes() const {
  std::vector<ProviderName> providers;
  for (const auto& [provider, nodes] : by_provider_.entries()) providers.push_back(provider);
  return providers;
}

zk::TreeCache::Interest NodeCache::InterestIn(std::string_view path) const {
  switch (paths::ParseBelowNodes(path).part) {
    case paths::BelowNodes::Part::kRecord:
      return zk::TreeCache::Interest::kData;
    case paths::BelowNodes::Part::kContender:
      return zk::TreeCache::Interest::kExistence;
    case paths::BelowNodes::Part::kOther:
      break;
  }
  return zk::TreeCache::Interest::kNone;
}

void NodeCache::OnZnode(const std::string& path, const zk::NodeData& node) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    OnRecord(place.id, path, node);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    OnContender(place.id, place.contender, true);
  }
}

void NodeCache::OnZnodeGone(const std::string& path) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    empty_.erase(place.id);
    Replace(place.id, std::nullopt);
    contenders_.erase(place.id);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    OnContender(place.id, place.contender, false);
  }
}

void NodeCache::OnRecord(const NodeId& id, const std::string& path, const zk::NodeData& node) {
  if (node.data.empty()) {
    malformed_.Discard(path);
    empty_.insert(id);
    Replace(id, std::nullopt);
    return;
  }
  empty_.erase(id);
  Replace(id, Read<StoredNode>(id, path, node));
}

void NodeCache::OnContender(const NodeId& id, const std::string& contender, bool is_there) {
  auto change = [&](Contenders& contenders) {
    if (is_there) {
      contenders.insert(contender);
    } else {
      contenders.erase(contender);
    }
  };
  if (StoredNode* node = records_.FindToChange(id)) {
    bool was_locked = node->is_locked();
    change(node->contenders);
    if (node->is_locked() == was_locked) return;
    StoredNode before = *node;
    before.contenders = was_locked ? Contenders{contender} : Contenders();
    return records_.Notify(id, &before, node);
  }
  auto it = contenders_.try_emplace(id).first;
  change(it->second);
  if (it->second.empty()) contenders_.erase(it);
}

void NodeCache::Replace(const NodeId& id, std::optional<StoredNode> after) {
  Contenders contenders;
  if (StoredNode* before = records_.FindToChange(id)) {
    contenders = std::exchange(before->contenders, FirstOf(before->contenders));
  } else if (auto unlisted = contenders_.extract(id)) {
    contenders = std::move(unlisted.mapped());
  }
  if (after) {
    after->contenders = std::move(contenders);
  } else if (!contenders.empty()) {
    // The record is empty or malformed, and its lock may still be held.
    contenders_[id] = std::move(contenders);
  }
  records_.Replace(id, std::move(after));
}

bool RequestLockCache::IsLocked(const RequestId& id) const {
  return !FindOrEmpty(directories_, id).contenders.empty();
}

zk::TreeCache::Interest RequestLockCache::InterestIn(std::string_view) const {
  return zk::TreeCache::Interest::kExistence;
}

void RequestLockCache::OnZnode(const std::string& path, const zk::NodeData&) {
  std::optional<paths::BelowRequestLocks> place = paths::ParseBelowRequestLocks(path);
  if (!place) return;
  Directory& directory = directories_[place->id];
  if (!place->contender.empty()) directory.contenders.insert(place->contender);
  listeners_.Notify(place->id);
}

void RequestLockCache::OnZnodeGone(const std::string& path) {
  std::optional<paths::BelowRequestLocks> place = paths::ParseBelowRequestLocks(path);
  if (!place) return;
  if (place->contender.empty()) {
    directories_.erase(place->id);
  } else if (auto it = directories_.find(place->id); it != directories_.end()) {
    it->second.contenders.erase(place->contender);
  }
  listeners_.Notify(place->id);
}

namespace {

template <class Key, class Name>
void Withdraw(std::map<Key, std::set<Name>>& names, const Key& key, const Name& name) {
  auto found = names.find(key);
  if (found == names.end()) return;
  found->second.erase(name);
  if (found->second.empty()) names.erase(found);
}

}  // namespace

const StoredUpload* ImageCache::NewestReadyUpload(const ImageName& image,
                                                  const ProviderName& provider) const {
  const auto& ready = ready_uploads_.EntryOf({image, provider}).uploads;
  return ready.empty() ? nullptr : uploads_.Find(ready.rbegin()->second);
}

const std::set<BuildKey>& ImageCache::BuildsIn(const ProviderName& provider) const {
  return FindOrEmpty(builds_in_, provider);
}

std::int32_t ImageCache::UploadRetries(const BuildKey& build, const ProviderName& provider) const {
  auto found = upload_retries_.find({build, provider});
  return found == upload_retries_.end() ? 0 : found->second;
}

zk::TreeCache::Interest ImageCache::InterestIn(std::string_view path) const {
  switch (paths::ParseBelowImages(path).part) {
    case Part::kBuild:
    case Part::kUpload:
    case Part::kBuildRequest:  // its age
    case Part::kProvider:      // its version
      return zk::TreeCache::Interest::kData;
    case Part::kImage:
    case Part::kPause:
    case Part::kImageContender:
    case Part::kUploadsContender:
      return zk::TreeCache::Interest::kExistence;
    case Part::kOther:
      break;
  }
  return zk::TreeCache::Interest::kNone;
}

void ImageCache::OnZnode(const std::string& path, const zk::NodeData& node) {
  paths::BelowImages place = paths::ParseBelowImages(path);
  const ImageName& image = place.key.build.image;
  switch (place.part) {
    case Part::kImage:
      images_.insert(image);
      break;
    case Part::kPause:
      paused_.insert(image);
      break;
    case Part::kBuildRequest:
      build_requests_[image] = RevisionOf(node.stat).created;
      break;
    case Part::kImageContender:
      building_[image].insert(place.contender);
      break;
    case Part::kUploadsContender:
      uploading_[{place.key.build, place.key.provider}].insert(place.contender);
      break;
    case Part::kBuild:
      ReadBuild(place.key.build, path, node);
      break;
    case Part::kProvider:
      builds_in_[place.key.provider].insert(place.key.build);
      // Images::RetryUpload writes the znode, so its version counts the retries.
      if (node.stat.version > 0) upload_retries_[{place.key.build, place.key.provider}] = node.stat.version;
      break;
    case Part::kUpload:
      uploads_.Replace(place.key, Read<StoredUpload>(place.key, path, node));
      break;
    case Part::kOther:
      return;
  }
  listeners_.Notify(image);
}

void ImageCache::OnZnodeGone(const std::string& path) {
  paths::BelowImages place = paths::ParseBelowImages(path);
  const ImageName& image = place.key.build.image;
  switch (place.part) {
    case Part::kImage:
      images_.erase(image);
      break;
    case Part::kPause:
      paused_.erase(image);
      break;
    case Part::kBuildRequest:
      build_requests_.erase(image);
      break;
    case Part::kImageContender:
      Withdraw(building_, image, place.contender);
      break;
    case Part::kUploadsContender:
      Withdraw(uploading_, std::pair(place.key.build, place.key.provider), place.contender);
      break;
    case Part::kBuild:
      empty_builds_.erase(place.key.build);
      builds_.Replace(place.key.build, std::nullopt);
      break;
    case Part::kProvider:
      Withdraw(builds_in_, place.key.provider, place.key.build);
      upload_retries_.erase({place.key.build, place.key.provider});
      break;
    case Part::kUpload:
      uploads_.Replace(place.key, std::nullopt);
      break;
    case Part::kOther:
      return;
  }
  listeners_.Notify(image);
}

void ImageCache::ReadBuild(const BuildKey& key, const std::string& path, const zk::NodeData& node) {
  if (node.data.empty()) {
    malformed_.Discard(path);
    empty_builds_[key] = RevisionOf(node.stat).created;
    return builds_.Replace(key, std::nullopt);
  }
  empty_builds_.erase(key);
  builds_.Replace(key, Read<StoredBuild>(key, path, node));
}

}  // namespace nodepool::store
