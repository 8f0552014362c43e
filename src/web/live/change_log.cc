#include "web/live/change_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "model/node_request.h"
#include "web/live/events.h"

namespace nodepool::web {

namespace {

// Names and reasons come from clients and clouds.
constexpr std::size_t kMaxReason = 300;

std::string LabelsOf(const std::vector<LabelName>& labels) {
  std::map<LabelName, int> counts;
  for (const LabelName& label : labels) ++counts[label];
  std::vector<std::string> parts;
  for (const auto& [label, count] : counts) {
    parts.push_back(count == 1 ? label.value : fmt::format("{} × {}", count, label.value));
  }
  return Join(parts, ", ");
}

std::string NodeText(const NodeId& id, const Node& node) {
  std::string request = node.allocated_to.empty() ? "" : " for request " + node.allocated_to.value;
  std::string job = node.hold_job ? " for job " + *node.hold_job : "";
  std::string comment = node.comment ? ": " + Excerpt(*node.comment, kMaxReason) : "";
  switch (*node.state) {
    case NodeState::kBuilding:
      return fmt::format("Node {} ({}) is being launched in {}{}.", id, LabelsOf(node.type), node.provider,
                         request);
    case NodeState::kReady:
      return fmt::format("Node {} ({}) in {} is ready{}.", id, LabelsOf(node.type), node.provider, request);
    case NodeState::kInUse:
      return fmt::format("Node {} is in use{}.", id, request);
    case NodeState::kUsed:
      return fmt::format("Node {} was given back.", id);
    case NodeState::kHold:
      return fmt::format("Node {} is held{}{}.", id, job, comment);
    case NodeState::kDeleting:
      return fmt::format("Node {} is being deleted.", id);
    case NodeState::kFailed:
      return fmt::format("The launch of node {} in {} failed.", id, node.provider);
    case NodeState::kAborted:
      return fmt::format("The launch of node {} in {} was aborted.", id, node.provider);
    case NodeState::kInit:
    case NodeState::kTesting:
    case NodeState::kDeleted:
      break;
  }
  return "";
}

std::string_view VerbOf(ImageState state) {
  switch (state) {
    case ImageState::kBuilding:
    case ImageState::kUploading:
      return "has begun";
    case ImageState::kReady:
      return "is ready";
    case ImageState::kFailed:
      return "failed";
    case ImageState::kDeleting:
      return "is being deleted";
  }
  return "";
}

std::string WithoutFigures(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return text;
}

// That a daemon refuses its changed configuration, and the end of it.
std::string TextOfRejection(const Component& before, const Component& after) {
  const auto& was = before.configuration_rejected;
  const auto& is = after.configuration_rejected;
  if (!is) {
    return was ? fmt::format("The {} on {} can use its changed configuration.", ToString(after.kind),
                             after.hostname)
               : "";
  }
  if (was && was->error == is->error) return "";
  return fmt::format("The {} on {} keeps its previous configuration: {}.", ToString(after.kind),
                     after.hostname, Excerpt(is->error, kMaxReason));
}

template <class Record>
bool IsNewState(const Record* before, const Record* after) {
  return after != nullptr && after->state && (before == nullptr || before->state != after->state);
}

}  // namespace

std::string TextOfChange(const NodeId& id, const Node* before, const Node* after) {
  if (after == nullptr) return fmt::format("Node {} is gone.", id);
  bool is_allocated =
      before != nullptr && before->allocated_to != after->allocated_to && !after->allocated_to.empty();
  if (!after->state || !(IsNewState(before, after) || is_allocated)) return "";
  return NodeText(id, *after);
}

std::string TextOfChange(const RequestId& id, const NodeRequest* before, const NodeRequest* after,
                         Duration waited) {
  if ((after != nullptr ? after : before)->requestor == kMinReadyRequestor) return "";
  if (after == nullptr) {
    bool is_withdrawn = before->state == RequestState::kRequested || before->state == RequestState::kPending;
    return is_withdrawn ? fmt::format("Request {} was withdrawn.", id) : "";
  }
  if (!IsNewState(before, after)) return "";
  std::string requestor = after->requestor ? " by " + Excerpt(*after->requestor, kMaxReason) : "";
  double seconds = std::chrono::duration<double>(waited).count();
  switch (*after->state) {
    case RequestState::kRequested:
      return before == nullptr
                 ? fmt::format("Request {}{} asks for {}.", id, requestor, LabelsOf(after->node_types))
                 : fmt::format("Request {} was given back by a launcher.", id);
    case RequestState::kPending:
      return fmt::format("Request {} was accepted.", id);
    case RequestState::kFulfilled:
      return fmt::format("Request {} is fulfilled after {:.1f} s with {}.", id, seconds,
                         fmt::join(after->nodes, ", "));
    case RequestState::kFailed:
      return fmt::format("Request {} failed: {}.", id,
                         Excerpt(Join(DeclineReasons(*after), "; "), kMaxReason));
  }
  return "";
}

std::string TextOfChange(const store::BuildKey& id, const ImageBuild* before, const ImageBuild* after) {
  if (after == nullptr) return fmt::format("Build {} is gone.", id);
  if (!IsNewState(before, after)) return "";
  return fmt::format("Build {} {}.", id, VerbOf(*after->state));
}

std::string TextOfChange(const store::UploadKey& id, const ImageUpload* before, const ImageUpload* after) {
  if (after == nullptr || !IsNewState(before, after)) return "";
  return fmt::format("The upload of {} to {} {}.", id.build, id.provider, VerbOf(*after->state));
}

std::string TextOfChange(const Component* before, const Component* after) {
  const Component& component = after != nullptr ? *after : *before;
  if (before != nullptr && after != nullptr) return TextOfRejection(*before, *after);
  return fmt::format("The {} on {} {}.", ToString(component.kind), component.hostname,
                     after != nullptr ? "has registered" : "has left");
}

std::string TextOfChange(const std::string& hostname, const ProviderName& name, const ProviderReport* before,
                         const ProviderReport* after) {
  if (after == nullptr)
    return fmt::format("The launcher on {} no longer serves provider {}.", hostname, name);
  if (before != nullptr && before->state == after->state && before->fault == after->fault) return "";
  switch (after->state) {
    case ProviderState::kUp:
      return fmt::format("The launcher on {} can use provider {}.", hostname, name);
    case ProviderState::kFailing:
      return fmt::format("The launcher on {} cannot use provider {}: {}.", hostname, name,
                         Excerpt(after->fault, kMaxReason));
    case ProviderState::kDraining:
      return fmt::format("The launcher on {} drains provider {}.", hostname, name);
    case ProviderState::kStarting:
      break;
  }
  return "";
}

std::string TextOfChange(const LabelName& name, const ShortStock* before, const ShortStock* after) {
  if (after == nullptr) return fmt::format("Label {} is not short of min-ready nodes any more.", name);
  if (before != nullptr && WithoutFigures(before->why) == WithoutFigures(after->why)) return "";
  return fmt::format("Label {} is short of min-ready nodes: {}.", name, Excerpt(after->why, kMaxReason));
}

std::string TextOfChange(const BreakerKey& key, const Breaker* before, const Breaker* after) {
  std::string what = fmt::format("The breaker of {}", ToString(key));
  if (after == nullptr) return what + " is closed.";
  if (before == nullptr) return fmt::format("{} is open: {}.", what, EvidenceOf(*after));
  if (after->failed_probes > before->failed_probes)
    return what + " stays open: the launch that was tried failed.";
  return "";
}

std::string TextOfChange(const ProviderName& name, const ProviderPause*, const ProviderPause* after) {
  if (after == nullptr) return fmt::format("Provider {} is not paused any more.", name);
  return fmt::format("Provider {} is {} by {}.", name, after->is_drained ? "drained" : "paused",
                     WhoAndWhy(*after));
}

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
