#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace nodepool::web {

// The entries of a small resource as clients know them. What has changed is found by comparison.
class Published {
 public:
  using Entries = std::map<std::string, std::string>;  // JSON by key
  // `json` is null for an entry that is gone.
  using See = std::function<void(const std::string& key, const std::string* json)>;

  // Shows what differs from the entries before.
  void Replace(Entries entries, const See& see);
  // The same for one entry; without `json` it is gone.
  void Set(const std::string& key, std::optional<std::string> json, const See& see);

 private:
  Entries entries_;
};

}  // namespace nodepool::web
