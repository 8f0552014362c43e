#include "model/component.h"

#include "model/record_fields.h"

namespace nodepool {
namespace {

// A word that we do not know is as good as no word: the record is still a live component.
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

// The directory decides, not what is written.
struct KindCodec {
  static constexpr std::string_view kExpected = "a text";
  static Reading Read(std::string_view, ComponentKind) { return Reading::kOurs; }
  static void Write(std::string& out, ComponentKind kind) {
    AppendJsonText(out, ToString(kind), JsonStyle::kPython);
  }
};

}  // namespace

// In the order of the keys.
template <class Fields, RecordOf<Component> T>
void EachField(Fields& fields, T& component) {
  bool is_pool = component.kind == ComponentKind::kPool;
  fields("hostname", component.hostname);
  if (is_pool) fields("id", component.id);
  fields("kind", component.kind, KindCodec());
  fields("model_api", component.model_api);
  if (is_pool) fields("name", component.name, OmittedWhenUnset());
  if (is_pool) fields("paused", component.is_paused);
  if (is_pool) fields("priority", component.priority);
  if (is_pool) fields("provider_name", component.provider_name);
  fields("state", component.state, ComponentStateCodec());
  if (is_pool) fields("supported_labels", component.supported_labels);
  fields("version", component.version);
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

Expected<Component> ParseComponent(ComponentKind kind, std::string_view json) {
  Component component;
  component.kind = kind;
  return ReadRecord(json, std::move(component));
}

std::string ToJson(const Component& component) { return WriteRecord(component); }

}  // namespace nodepool
