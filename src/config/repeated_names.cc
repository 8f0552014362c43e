#include "config/repeated_names.h"

#include <fmt/format.h>

#include <string_view>

#include "base/text.h"
#include "base/text_hash.h"

namespace nodepool::config {
namespace {

const Value::List& NamedEntries(const Value& map, std::string_view key) {
  static const Value::List none;
  const Value* found = map.Find(key);
  return found != nullptr && found->kind() == Value::Kind::kList ? found->list() : none;
}

std::string EntryName(const Value& entry) {
  const Value* name = entry.Find("name");
  return name != nullptr && name->is_scalar() ? name->text() : "";
}

// `kind`: "pool"; `owner`: " of provider a".
void AddRepeated(const Value& map, std::string_view key, std::string_view kind, std::string_view owner,
                 std::vector<RepeatedName>& repeated) {
  TextMap<Position> known;
  for (const Value& entry : NamedEntries(map, key)) {
    std::string name = EntryName(entry);
    if (name.empty()) continue;
    auto [before, is_new] = known.try_emplace(name, entry.position());
    if (is_new) continue;
    repeated.push_back(
        {fmt::format("{} {}{}", kind, Excerpt(name), owner), before->second, entry.position()});
    before->second = entry.position();
  }
}

}  // namespace

std::string RepeatedName::ToString() const {
  return fmt::format("line {}, column {}: {} is defined again; what line {} defines has no effect",
                     again.line, again.column, what, before.line);
}

std::vector<RepeatedName> RepeatedNames(const Value& document) {
  std::vector<RepeatedName> repeated;
  AddRepeated(document, "labels", "label", "", repeated);
  AddRepeated(document, "providers", "provider", "", repeated);
  for (const Value& provider : NamedEntries(document, "providers")) {
    std::string of_provider = fmt::format(" of provider {}", Excerpt(EntryName(provider)));
    AddRepeated(provider, "diskimages", "diskimage", of_provider, repeated);
    AddRepeated(provider, "cloud-images", "cloud image", of_provider, repeated);
    AddRepeated(provider, "pools", "pool", of_provider, repeated);
    for (const Value& pool : NamedEntries(provider, "pools")) {
      std::string of_pool = fmt::format(" of pool {}{}", Excerpt(EntryName(pool)), of_provider);
      AddRepeated(pool, "labels", "label", of_pool, repeated);
    }
  }
  return repeated;
}

std::vector<RepeatedName> RepeatedDiskImages(const Value& document) {
  std::vector<RepeatedName> repeated;
  AddRepeated(document, "diskimages", "diskimage", "", repeated);
  return repeated;
}

}  // namespace nodepool::config
