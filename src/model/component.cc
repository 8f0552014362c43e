#include "model/component.h"

#include <algorithm>

#include "model/json.h"
#include "model/record_fields.h"

namespace nodepool {
namespace {

namespace json = boost::json;

// An unknown word counts as none: the record is still that of a live component.
struct ComponentStateCodec {
  static constexpr std::string_view kExpected = "a text or null";
  static Reading Read(std::string_view written, ComponentState& state) {
    std::optional<std::string> text;
    Reading reading = codec::ReadText(written, text);
    state = ComponentState::kStopped;
    for (ComponentState known :
         {ComponentState::kInitializing, ComponentState::kRunning, ComponentState::kPaused}) {
      if (ToString(known) == text) state = known;
    }
    return reading;
  }
  static void Write(std::string& out, ComponentState state) {
    AppendJsonText(out, ToString(state), JsonStyle::kPython);
  }
};

// The directory decides, not the written value.
struct KindCodec {
  static constexpr std::string_view kExpected = "a text";
  static Reading Read(std::string_view, ComponentKind) { return Reading::kOurs; }
  static void Write(std::string& out, ComponentKind kind) {
    AppendJsonText(out, ToString(kind), JsonStyle::kPython);
  }
};

constexpr ProviderState kProviderStates[] = {ProviderState::kStarting, ProviderState::kUp,
                                             ProviderState::kFailing, ProviderState::kDraining};

// An unknown word, from a later version, counts as the usual one.
ProviderState ProviderStateOf(std::string_view text) {
  auto state = std::ranges::find(kProviderStates, text, [](ProviderState s) { return ToString(s); });
  return state == std::end(kProviderStates) ? ProviderState::kUp : *state;
}

std::string TextOf(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

WallTime TimeOf(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? FromSeconds(value->to_number<double>()) : WallTime();
}

std::vector<std::string> TextsOf(const json::object& object, std::string_view key) {
  std::vector<std::string> texts;
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_array()) return texts;
  for (const json::value& text : value->get_array()) {
    if (text.is_string()) texts.emplace_back(text.get_string());
  }
  return texts;
}

ProviderReport ReadReport(const json::object& object) {
  ProviderReport report;
  report.state = ProviderStateOf(TextOf(object, "state"));
  report.fault = TextOf(object, "fault");
  report.since = TimeOf(object, "since");
  report.notices = TextsOf(object, "notices");
  const json::value* limit = object.if_contains("limit");
  if (limit == nullptr || !limit->is_object()) return report;
  for (const auto& [resource, amount] : limit->get_object()) {
    if (amount.is_number()) report.limit[resource] = amount.to_number<double>();
  }
  return report;
}

json::value ToJsonValue(const ProviderReport& report) {
  json::object object{{"state", ToString(report.state)}, {"since", ToSeconds(report.since)}};
  if (!report.fault.empty()) object["fault"] = report.fault;
  if (!report.limit.empty()) object["limit"] = Amounts(report.limit);
  if (!report.notices.empty()) object["notices"] = json::array(report.notices.begin(), report.notices.end());
  return object;
}

std::optional<ProviderReport> ReadEntry(const json::value& value, const ProviderReport&) {
  return value.is_object() ? std::optional(ReadReport(value.get_object())) : std::nullopt;
}

json::value ToJsonValue(const ShortStock& shortage) {
  return json::object{{"since", ToSeconds(shortage.since)}, {"why", shortage.why}};
}

std::optional<ShortStock> ReadEntry(const json::value& value, const ShortStock&) {
  if (!value.is_object()) return std::nullopt;
  return ShortStock{TimeOf(value.get_object(), "since"), TextOf(value.get_object(), "why")};
}

json::value ToJsonValue(const std::string& text) { return json::value(text); }

std::optional<std::string> ReadEntry(const json::value& value, const std::string&) {
  return value.is_string() ? std::optional<std::string>(value.get_string()) : std::nullopt;
}

// An object by name, left out when empty. Invalid parts are left out: the component that wrote them is alive
// all the same.
template <class Name, class Entry>
struct EntriesCodec {
  using Entries = std::map<Name, Entry>;
  static constexpr std::string_view kExpected = "an object";
  static Reading Read(std::string_view written, Entries& entries) {
    json::value value = JsonValueOf(written);
    if (!value.is_object()) return Reading::kOther;
    for (const auto& [name, part] : value.get_object()) {
      std::optional<Entry> entry = ReadEntry(part, Entry());
      if (entry) entries[Name(std::string(name))] = std::move(*entry);
    }
    return Reading::kOther;
  }
  static void Write(std::string& out, const Entries& entries) {
    json::object object;
    for (const auto& [name, entry] : entries) object[name.value] = ToJsonValue(entry);
    AppendJson(out, json::value(std::move(object)), JsonStyle::kPython);
  }
  static bool IsUnset(const Entries& entries) { return entries.empty(); }
};

// Left out when there is none.
struct RejectedCodec {
  using Rejected = std::optional<RejectedConfiguration>;
  static constexpr std::string_view kExpected = "an object";
  static Reading Read(std::string_view written, Rejected& rejected) {
    json::value value = JsonValueOf(written);
    if (value.is_object())
      rejected = {TimeOf(value.get_object(), "since"), TextOf(value.get_object(), "error")};
    return Reading::kOther;
  }
  static void Write(std::string& out, const Rejected& rejected) {
    json::object object;
    if (rejected) object = {{"since", ToSeconds(rejected->since)}, {"error", rejected->error}};
    AppendJson(out, json::value(std::move(object)), JsonStyle::kPython);
  }
  static bool IsUnset(const Rejected& rejected) { return !rejected; }
};

// Left out where there is none; what cannot be read counts as none.
struct WebServerCodec {
  static constexpr std::string_view kExpected = "an object";
  static Reading Read(std::string_view written, std::optional<WebServer>& server) {
    json::value value = JsonValueOf(written);
    const json::value* port = value.is_object() ? value.get_object().if_contains("port") : nullptr;
    if (port == nullptr || !port->is_int64() || port->get_int64() < 1 || port->get_int64() > 65'535)
      return Reading::kOther;
    const json::value* tls = value.get_object().if_contains("tls");
    server = {port->get_int64(), tls != nullptr && tls->is_bool() && tls->get_bool()};
    return Reading::kOther;
  }
  static void Write(std::string& out, const std::optional<WebServer>& server) {
    AppendJson(out, json::value(json::object{{"port", server->port}, {"tls", server->has_tls}}),
               JsonStyle::kPython);
  }
  static bool IsUnset(const std::optional<WebServer>& server) { return !server; }
};

// Left out when false.
struct ClaimCodec : Codec<bool> {
  static bool IsUnset(bool claim) { return !claim; }
};

}  // namespace

// In the order of the keys.
template <class Fields, RecordOf<Component> T>
void EachField(Fields& fields, T& component) {
  bool is_pool = component.kind == ComponentKind::kPool;
  if (!is_pool) fields("configuration_rejected", component.configuration_rejected, RejectedCodec());
  fields("hostname", component.hostname);
  if (is_pool) fields("id", component.id);
  fields("kind", component.kind, KindCodec());
  if (is_pool) fields("label_faults", component.label_faults, EntriesCodec<LabelName, std::string>());
  fields("locks_slots", component.locks_slots, ClaimCodec());
  fields("model_api", component.model_api);
  if (is_pool) fields("name", component.name, OmittedWhenUnset());
  if (is_pool) fields("paused", component.is_paused);
  if (is_pool) fields("priority", component.priority);
  if (is_pool) fields("provider_name", component.provider_name);
  if (component.kind == ComponentKind::kLauncher) {
    fields("providers", component.providers, EntriesCodec<ProviderName, ProviderReport>());
    fields("shortages", component.shortages, EntriesCodec<LabelName, ShortStock>());
  }
  fields("state", component.state, ComponentStateCodec());
  if (is_pool) fields("supported_labels", component.supported_labels);
  fields("version", component.version);
  if (component.kind == ComponentKind::kLauncher) fields("web", component.web, WebServerCodec());
}

std::string_view ToString(ComponentKind kind) {
  switch (kind) {
    case ComponentKind::kLauncher:
      return "launcher";
    case ComponentKind::kBuilder:
      return "builder";
    case ComponentKind::kPool:
      return "pool";
  }
  return "";
}

std::string_view ToString(ComponentState state) {
  switch (state) {
    case ComponentState::kInitializing:
      return "initializing";
    case ComponentState::kRunning:
      return "running";
    case ComponentState::kPaused:
      return "paused";
    case ComponentState::kStopped:
      return "stopped";
  }
  return "";
}

std::string_view ToString(ProviderState state) {
  switch (state) {
    case ProviderState::kStarting:
      return "starting";
    case ProviderState::kUp:
      return "up";
    case ProviderState::kFailing:
      return "failing";
    case ProviderState::kDraining:
      return "draining";
  }
  return "";
}

std::vector<std::string_view> ProviderStateWords() {
  std::vector<std::string_view> words;
  for (ProviderState state : kProviderStates) words.push_back(ToString(state));
  return words;
}

Expected<Component> ParseComponent(ComponentKind kind, std::string_view json) {
  Component component;
  component.kind = kind;
  return ReadRecord(json, std::move(component));
}

std::string ToJson(const Component& component) { return WriteRecord(component); }

}  // namespace nodepool
