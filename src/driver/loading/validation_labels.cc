#include "driver/loading/validation_labels.h"

#include <algorithm>
#include <functional>
#include <set>

#include "model/validation.h"

namespace nodepool::driver {
namespace {

using config::Value;
using Images = std::map<ImageName, config::DiskImage>;

std::string TextOf(const Value& map, std::string_view key) {
  const Value* value = map.Find(key);
  return value != nullptr && value->is_scalar() ? value->text() : "";
}

// The mapping with another value under a key that it has.
Value WithValue(const Value& map, std::string_view key, Value changed) {
  Value::Map entries = map.map();
  std::ranges::find(entries, key, &Value::Map::value_type::first)->second = std::move(changed);
  return Value::MakeMap(std::move(entries), map.position());
}

// The mapping with its list under `key` changed; without such a list it stays as it is.
Value ChangeList(const Value& map, std::string_view key, const std::function<void(Value::List&)>& change) {
  const Value* list = map.Find(key);
  if (list == nullptr || list->kind() != Value::Kind::kList) return map;
  Value::List items = list->list();
  change(items);
  return WithValue(map, key, Value::MakeList(std::move(items), list->position()));
}

Value CopyFor(const Value& label, const LabelName& name) {
  return WithValue(label, "name", Value::String(name.value, label.Find("name")->position()));
}

void AddCopies(Value::List& labels, const Images& images) {
  std::set<std::string> done;
  Value::List copies;
  for (const Value& label : labels) {
    std::string name = TextOf(label, "name"), image = TextOf(label, "diskimage");
    auto settings = images.find(ImageName(image));
    if (name.empty() || settings == images.end() || !settings->second.validation) continue;
    if (done.insert(image).second) copies.push_back(CopyFor(label, ValidationLabel(LabelName(name))));
  }
  labels.insert(labels.end(), copies.begin(), copies.end());
}

}  // namespace

config::ProviderSection WithValidationLabels(config::ProviderSection section, const Images& images) {
  bool is_any =
      std::ranges::any_of(images, [](const auto& image) { return image.second.validation.has_value(); });
  if (!is_any || section.source.kind() != Value::Kind::kMap) return section;
  auto add = [&](Value::List& pools) {
    for (Value& pool : pools)
      pool = ChangeList(pool, "labels", [&](Value::List& labels) { AddCopies(labels, images); });
  };
  section.source = ChangeList(section.source, "pools", add);
  return section;
}

}  // namespace nodepool::driver
