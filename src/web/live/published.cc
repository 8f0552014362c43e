#include "web/live/published.h"

#include <utility>

namespace nodepool::web {

void Published::Replace(Entries entries, const See& see) {
  Entries before = std::exchange(entries_, std::move(entries));
  for (const auto& [key, json] : before) {
    if (!entries_.contains(key)) see(key, nullptr);
  }
  for (const auto& [key, json] : entries_) {
    auto known = before.find(key);
    if (known == before.end() || known->second != json) see(key, &json);
  }
}

void Published::Set(const std::string& key, std::optional<std::string> json, const See& see) {
  if (!json) {
    if (entries_.erase(key) > 0) see(key, nullptr);
    return;
  }
  auto [entry, is_new] = entries_.try_emplace(key);
  if (!is_new && entry->second == *json) return;
  entry->second = std::move(*json);
  see(key, &entry->second);
}

}  // namespace nodepool::web
