#include "model/component.h"

#include <map>

#include "model/json.h"
#include "model/record_reader.h"

namespace nodepool {
namespace {

namespace json = boost::json;

// A word that we do not know is as good as no word: the record is still a live
// component.
ComponentState StateOf(std::string_view text) {
  for (ComponentState state :
       {ComponentState::kInitializing, ComponentState::kRunning, ComponentState::kPaused}) {
    if (ToString(state) == text) return state;
  }
  return ComponentState::kStopped;
}

void ReadPool(RecordReader& reader, Component& pool) {
  pool.id = reader.IdText<LauncherId>("id");
  if (std::optional<std::string> name = reader.Text("name")) pool.name = PoolName(std::move(*name));
  pool.provider_name = reader.IdText<ProviderName>("provider_name");
  pool.supported_labels = reader.IdTexts<LabelName>("supported_labels");
  pool.priority = reader.Integer("priority").value_or(100);
  pool.is_paused = reader.Flag("paused", false);
}

void WritePool(const Component& pool, json::object& record) {
  record["id"] = pool.id.str();
  if (pool.name) record["name"] = pool.name->str();
  record["provider_name"] = pool.provider_name.str();
  record["supported_labels"] = ToArray(pool.supported_labels);
  record["priority"] = pool.priority;
  record["paused"] = pool.is_paused;
}

}  // namespace

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
  RecordReader reader(json);
  Component component;
  component.kind = kind;
  reader.Find("kind");  // the directory decides
  component.hostname = reader.Text("hostname").value_or("");
  component.model_api = reader.Integer("model_api").value_or(0);
  component.state = StateOf(reader.Text("state").value_or(""));
  component.version = reader.Text("version");
  if (kind == ComponentKind::kPool) ReadPool(reader, component);
  if (reader.error()) return std::unexpected(*reader.error());
  component.unknown = reader.TakeUnknown();
  return component;
}

std::string ToJson(const Component& component) {
  json::object record;
  record["hostname"] = component.hostname;
  record["kind"] = ToString(component.kind);
  record["model_api"] = component.model_api;
  record["state"] = ToString(component.state);
  record["version"] = ToValue(component.version);
  if (component.kind == ComponentKind::kPool) WritePool(component, record);
  AddUnknown(component.unknown, record);

  std::map<std::string_view, const json::value*> sorted;
  for (const auto& member : record) sorted.emplace(member.key(), &member.value());
  json::object in_order;
  for (const auto& [key, value] : sorted) in_order[key] = *value;
  return WriteJson(in_order);
}

}  // namespace nodepool
