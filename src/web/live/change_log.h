#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "async/loop.h"
#include "base/subscription.h"
#include "launcher/launcher.h"
#include "model/component.h"
#include "model/node.h"
#include "model/node_request.h"
#include "model/provider_pause.h"
#include "store/records.h"
#include "web/api/open_api.h"

namespace nodepool::web {

// What a change means, in a sentence for operators; empty: nothing that they want to read. `before` is null
// for a record that is new, `after` for one that is gone; never both.

std::string TextOfChange(const NodeId& id, const Node* before, const Node* after);
// `waited` is the time since the request was made. Of requests for min-ready nodes nothing: their nodes show
// what they get, and a shortage is a change of its label.
std::string TextOfChange(const RequestId& id, const NodeRequest* before, const NodeRequest* after,
                         Duration waited);
std::string TextOfChange(const store::BuildKey& id, const ImageBuild* before, const ImageBuild* after);
std::string TextOfChange(const store::UploadKey& id, const ImageUpload* before, const ImageUpload* after);
// Of a launcher or builder.
std::string TextOfChange(const Component* before, const Component* after);
// Of a launcher's provider.
std::string TextOfChange(const std::string& hostname, const ProviderName& name, const ProviderReport* before,
                         const ProviderReport* after);
// Of a label's stock of min-ready nodes: once for each cause, whatever its figures.
std::string TextOfChange(const LabelName& name, const ShortStock* before, const ShortStock* after);
// Of a breaker: that it opens, is tested in vain, or closes.
std::string TextOfChange(const BreakerKey& key, const Breaker* before, const Breaker* after);
// Of a provider's switch.
std::string TextOfChange(const ProviderName& name, const ProviderPause* before, const ProviderPause* after);

// Something that happened, for operators.
struct ChangeEntry {
  std::uint64_t id = 0;  // grows
  WallTime at{};
  std::string_view kind;  // "node", "request", "image", "provider", "label"
  std::string about;      // the key of the record
  std::string text;       // a sentence
};
const FieldTable<ChangeEntry>& ChangeFields();

// The latest changes, at most 250 of each kind, so that many of one kind do not displace the others. What
// changes while the records are not complete is not listed: then it is not known when it happened.
class ChangeLog {
 public:
  static constexpr std::size_t kMaxOfAKind = 250;

  // `added` is called for each entry. Both outlive it.
  ChangeLog(Loop& loop, const launcher::Launcher& launcher, std::function<void(const ChangeEntry&)> added);

  // The latest first, at most `limit`.
  std::vector<const ChangeEntry*> Latest(std::size_t limit) const;

 private:
  void Add(std::string_view kind, std::string about, std::string text);
  void ComponentChanged(const std::string& path, const Component* before, const Component* after);

  Loop& loop_;
  const launcher::Launcher& launcher_;
  std::function<void(const ChangeEntry&)> added_;
  std::map<std::string_view, std::deque<ChangeEntry>> entries_;  // by kind, the latest first
  std::uint64_t last_id_ = 0;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::web
