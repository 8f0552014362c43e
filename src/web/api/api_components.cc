#include "model/cell.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using listing::Kind;

namespace {

bool IsPool(const ComponentEntry& entry) { return entry.second.kind == ComponentKind::kPool; }

}  // namespace

// What only pools have is null or empty for the others.
const FieldTable<ComponentEntry>& ComponentFields() {
  static const FieldTable<ComponentEntry> fields({
      {{"path", Text(), "of its entry, below the directory of components"},
       [](const ComponentEntry& c) { return json::value(c.first); }},
      {{"kind", OneOf({"launcher", "builder", "pool"}), ""},
       [](const ComponentEntry& c) { return json::value(ToString(c.second.kind)); }},
      {{"hostname", Text(), ""}, [](const ComponentEntry& c) { return json::value(c.second.hostname); }},
      {{"state", OneOf({"initializing", "running", "paused", "stopped"}), "", false, Kind::kState},
       [](const ComponentEntry& c) { return json::value(ToString(c.second.state)); }},
      {{"version", Text().OrNull(), "of the program"},
       [](const ComponentEntry& c) { return TextCell(c.second.version); }},
      {{"launcher", Text().OrNull(), "of a pool: how it signs what it declines"},
       [](const ComponentEntry& c) { return TextOrNull(c.second.id.value); }},
      {{"provider", Text().OrNull(), "of a pool", false, Kind::kProvider},
       [](const ComponentEntry& c) { return TextOrNull(c.second.provider_name.value); }},
      {{"pool", Text().OrNull(), "its name"},
       [](const ComponentEntry& c) {
         return c.second.name ? json::value(c.second.name->value) : json::value();
       }},
      {{"labels", ListOf(Text()), "that a pool offers", false, Kind::kLabel},
       [](const ComponentEntry& c) { return JsonNames(c.second.supported_labels); }},
      {{"priority", Whole().OrNull(), "of a pool; smaller is preferred"},
       [](const ComponentEntry& c) { return IsPool(c) ? json::value(c.second.priority) : json::value(); }},
      {{"is_paused", Flag().OrNull(), "of a pool: its oldest accepted request waits for capacity"},
       [](const ComponentEntry& c) { return IsPool(c) ? json::value(c.second.is_paused) : json::value(); }},
  });
  return fields;
}

}  // namespace nodepool::web
