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
#include "web/api/field_table.h"

namespace nodepool::web {

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
