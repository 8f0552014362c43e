#include "web/live/change_log.h"

#include <algorithm>
#include <utility>

#include "web/live/change_text.h"
#include "web/live/entries.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

// Calls `see` with each key of one or both maps, and its values, null where there is none.
template <class Map, class See>
void Compare(const Map& before, const Map& after, const See& see) {
  for (const auto& [key, value] : before) {
    auto now = after.find(key);
    see(key, &value, now == after.end() ? nullptr : &now->second);
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key)) see(key, nullptr, &value);
  }
}

}  // namespace

const FieldTable<ChangeEntry>& ChangeFields() {
  static const FieldTable<ChangeEntry> fields({
      {{"id", Whole(), "grows; unique until the launcher starts again"},
       [](const ChangeEntry& c) { return json::value(c.id); }},
      {{"at", Number(), "seconds since the epoch"},
       [](const ChangeEntry& c) { return json::value(ToSeconds(c.at)); }},
      {{"kind", OneOf({"node", "request", "image", "provider", "label"}), "what it is about"},
       [](const ChangeEntry& c) { return json::value(c.kind); }},
      {{"about", Text(), "key of the node, request, build, upload, provider, label or component"},
       [](const ChangeEntry& c) { return Cell::OfText(c.about); }},
      {{"text", Text(), "a sentence"}, [](const ChangeEntry& c) { return Cell::OfText(c.text); }},
  });
  return fields;
}

ChangeLog::ChangeLog(Loop& loop, const launcher::Launcher& launcher,
                     std::function<void(const ChangeEntry&)> added)
    : loop_(loop), launcher_(launcher), added_(std::move(added)) {
  const store::Caches& records = launcher.records();
  auto record_of = [](const auto* stored) { return stored != nullptr ? &stored->record : nullptr; };
  subscriptions_.push_back(
      records.nodes.OnChange([this, record_of](const NodeId& id, const auto* before, const auto* after) {
        Add("node", id.value, TextOfChange(id, record_of(before), record_of(after)));
      }));
  subscriptions_.push_back(records.requests.OnChange(
      [this, record_of](const RequestId& id, const auto* before, const auto* after) {
        WallTime made = CreationOf(after != nullptr ? *after : *before);
        Add("request", id.value, TextOfChange(id, record_of(before), record_of(after), loop_.Now() - made));
      }));
  subscriptions_.push_back(records.images.OnBuild(
      [this, record_of](const store::BuildKey& key, const auto* before, const auto* after) {
        Add("image", PathOf(key), TextOfChange(key, record_of(before), record_of(after)));
      }));
  subscriptions_.push_back(records.images.OnUpload(
      [this, record_of](const store::UploadKey& key, const auto* before, const auto* after) {
        Add("image", PathOf(key), TextOfChange(key, record_of(before), record_of(after)));
      }));
  subscriptions_.push_back(records.pauses.OnChange(
      [this](const ProviderName& name, const ProviderPause* before, const ProviderPause* after) {
        Add("provider", name.value, TextOfChange(name, before, after));
      }));
  subscriptions_.push_back(
      records.breakers.OnChange([this](const BreakerKey& key, const Breaker* before, const Breaker* after) {
        Add("provider", key.provider.value, TextOfChange(key, before, after));
      }));
  subscriptions_.push_back(
      records.components.OnChange([this](const std::string& path, const Component* before,
                                         const Component* after) { ComponentChanged(path, before, after); }));
}

void ChangeLog::Add(std::string_view kind, std::string about, std::string text) {
  if (text.empty() || !launcher_.records().synced()) return;
  std::deque<ChangeEntry>& entries = entries_[kind];
  entries.push_front({++last_id_, loop_.Now(), kind, std::move(about), std::move(text)});
  if (entries.size() > kMaxOfAKind) entries.pop_back();
  added_(entries.front());
}

void ChangeLog::ComponentChanged(const std::string& path, const Component* before, const Component* after) {
  if ((after != nullptr ? after : before)->kind == ComponentKind::kPool) return;
  Add("provider", path, TextOfChange(before, after));
  if (after == nullptr) return;
  static const std::map<ProviderName, ProviderReport> none;
  Compare(before != nullptr ? before->providers : none, after->providers,
          [&](const ProviderName& name, const ProviderReport* was, const ProviderReport* is) {
            Add("provider", name.value, TextOfChange(after->hostname, name, was, is));
          });
  static const std::map<LabelName, ShortStock> enough;
  Compare(before != nullptr ? before->shortages : enough, after->shortages,
          [&](const LabelName& name, const ShortStock* was, const ShortStock* is) {
            Add("label", name.value, TextOfChange(name, was, is));
          });
}

std::vector<const ChangeEntry*> ChangeLog::Latest(std::size_t limit) const {
  std::vector<const ChangeEntry*> latest;
  for (const auto& [kind, entries] : entries_) {
    for (const ChangeEntry& entry : entries) latest.push_back(&entry);
  }
  std::ranges::sort(latest, std::greater(), [](const ChangeEntry* entry) { return entry->id; });
  if (latest.size() > limit) latest.resize(limit);
  return latest;
}

}  // namespace nodepool::web
