#include "config/schema/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "config/schema/bindings.h"

namespace nodepool::config {

namespace {

template <class Number>
std::optional<Number> ParseWhole(std::string_view text) {
  text = Trim(text, " \t\n");
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

const Schema& MapIn(const Schema& schema) {
  auto map = std::ranges::find(schema.choices(), Schema::Kind::kMap, &Schema::kind);
  return map == schema.choices().end() ? schema : *map;
}

}  // namespace

std::optional<std::int64_t> LenientInt(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kInt:
      return value.int_value();
    case Value::Kind::kBool:
      return value.bool_value() ? 1 : 0;
    case Value::Kind::kFloat: {
      double number = value.float_value();
      if (!(std::abs(number) < 9e18)) return std::nullopt;
      return static_cast<std::int64_t>(number);
    }
    case Value::Kind::kString:
      return ParseWhole<std::int64_t>(value.text());
    default:
      return std::nullopt;
  }
}

std::optional<double> LenientFloat(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kInt:
      return static_cast<double>(value.int_value());
    case Value::Kind::kBool:
      return value.bool_value() ? 1 : 0;
    case Value::Kind::kFloat:
      if (std::isnan(value.float_value())) return std::nullopt;
      return value.float_value();
    case Value::Kind::kString: {
      std::optional<double> number = ParseWhole<double>(value.text());
      if (number && std::isnan(*number)) return std::nullopt;
      return number;
    }
    default:
      return std::nullopt;
  }
}

Duration SecondsToDuration(double seconds) {
  constexpr double kMaxSeconds = 9e9;  // within 64 bits of nanoseconds: 285 years
  if (seconds > kMaxSeconds) return Duration::max();
  if (seconds < -kMaxSeconds) return Duration::min();
  return std::chrono::round<Duration>(std::chrono::duration<double>(seconds));
}

Section::Section(const Value& value, const Schema& schema, std::string place)
    : value_(value), schema_(schema), place_(std::move(place)) {
  if (value.is_null()) {
    value_ = Value::MakeMap({}, value.position());
  } else if (value.kind() != Value::Kind::kMap) {
    std::string who = place_.empty() ? "the file" : place_;
    throw ErrorAt(value.position(), fmt::format("{}: expected a mapping, found {}", who, value.KindName()));
  }
}

const Value* Section::Raw(std::string_view key) const {
  const Value* found = value_.Find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool Section::IsMapping(std::string_view key) const {
  const Value* found = Raw(key);
  return found != nullptr && found->kind() == Value::Kind::kMap;
}

const Setting& Section::Declared(std::string_view key) const {
  const Setting* setting = schema_.Find(key);
  assert(setting != nullptr && "every setting that is read must be declared");
  return *setting;
}

bool Section::IsGiven(std::string_view key) const { return Present(Declared(key)) != nullptr; }

const Value* Section::Present(const Setting& setting) const {
  const Value* found = Raw(setting.key);
  if (found == nullptr && setting.is_required) throw Fail(setting.key, "is required");
  return found;
}

std::string Section::Describe(const Setting& setting, const Value& value, std::string_view expected) const {
  if (!value.is_scalar() || setting.is_secret)
    return fmt::format("expected {}, found {}", expected, value.KindName());
  return fmt::format("expected {}, found {} '{}'", expected, value.KindName(), Excerpt(value.text()));
}

Error Section::Fail(std::string_view key, std::string_view message) const {
  const Value* found = value_.Find(key);
  Position position = found != nullptr ? found->position() : value_.position();
  std::string dot = place_.empty() ? "" : ".";
  return ErrorAt(position, fmt::format("{}{}{}: {}", place_, dot, key, message));
}

std::optional<std::int64_t> Section::OptionalInt(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return std::nullopt;
  std::optional<std::int64_t> number = LenientInt(*found);
  if (!number) throw Fail(key, Describe(setting, *found, "an integer"));
  CheckBounds(setting, *found, static_cast<double>(*number));
  return number;
}

std::optional<double> Section::OptionalFloat(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return std::nullopt;
  std::optional<double> number = LenientFloat(*found);
  if (!number) throw Fail(key, Describe(setting, *found, "a number"));
  CheckBounds(setting, *found, *number);
  return number;
}

void Section::CheckBounds(const Setting& setting, const Value& found, double number) const {
  std::optional<std::string> expected = setting.schema.OutOfBounds(number);
  if (expected) throw Fail(setting.key, Describe(setting, found, *expected));
}

std::optional<bool> Section::OptionalBool(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return std::nullopt;
  if (found->kind() == Value::Kind::kBool) return found->bool_value();
  if (found->kind() == Value::Kind::kInt) return found->int_value() != 0;
  throw Fail(key, Describe(setting, *found, "true or false"));
}

std::optional<std::string> Section::OptionalText(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return std::nullopt;
  if (!found->is_scalar()) throw Fail(key, Describe(setting, *found, "text"));
  return found->text();
}

std::int64_t Section::Int(std::string_view key) const {
  if (std::optional<std::int64_t> number = OptionalInt(key)) return *number;
  const boost::json::value& fallback = Declared(key).default_value;
  return fallback.is_null() ? 0 : fallback.to_number<std::int64_t>();
}

double Section::Float(std::string_view key) const {
  if (std::optional<double> number = OptionalFloat(key)) return *number;
  const boost::json::value& fallback = Declared(key).default_value;
  return fallback.is_null() ? 0 : fallback.to_number<double>();
}

bool Section::Bool(std::string_view key) const {
  if (std::optional<bool> truth = OptionalBool(key)) return *truth;
  const boost::json::value& fallback = Declared(key).default_value;
  return fallback.is_bool() && fallback.get_bool();
}

std::string Section::Text(std::string_view key) const {
  if (std::optional<std::string> text = OptionalText(key)) return *text;
  const boost::json::value& fallback = Declared(key).default_value;
  return fallback.is_string() ? std::string(fallback.get_string()) : std::string();
}

Duration Section::Seconds(std::string_view key) const { return SecondsToDuration(Float(key)); }

std::vector<std::string> Section::TextList(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return {};
  if (found->is_scalar()) return {found->text()};
  if (found->kind() != Value::Kind::kList) throw Fail(key, Describe(setting, *found, "a list"));
  std::vector<std::string> texts;
  std::size_t index = 0;
  for (const Value& item : found->list()) {
    if (!item.is_scalar()) {
      throw ErrorAt(item.position(), fmt::format("{}{}{}[{}]: expected text, found {}", place_,
                                                 place_.empty() ? "" : ".", key, index, item.KindName()));
    }
    texts.push_back(item.text());
    ++index;
  }
  return texts;
}

boost::json::object Section::Object(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return {};
  if (found->kind() != Value::Kind::kMap) throw Fail(key, Describe(setting, *found, "a mapping"));
  return found->ToJson().as_object();
}

boost::json::array Section::Array(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return {};
  if (found->kind() != Value::Kind::kList) throw Fail(key, Describe(setting, *found, "a list"));
  return found->ToJson().as_array();
}

std::vector<Section> Section::Sections(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return {};
  // An empty mapping counts as an empty list.
  if (found->kind() == Value::Kind::kMap && found->map().empty()) return {};
  if (found->kind() != Value::Kind::kList) throw Fail(key, Describe(setting, *found, "a list"));
  const Schema* item_schema = setting.schema.element();
  assert(item_schema != nullptr);
  std::vector<Section> sections;
  for (const Value& item : found->list()) {
    sections.emplace_back(item, *item_schema,
                          fmt::format("{}{}{}[{}]", place_, place_.empty() ? "" : ".", key, sections.size()));
  }
  return sections;
}

Section Section::Sub(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  return Section(found != nullptr ? *found : Value::Null(value_.position()), MapIn(setting.schema),
                 fmt::format("{}{}{}", place_, place_.empty() ? "" : ".", key));
}

std::vector<std::pair<std::string, std::string>> Section::TextMap(std::string_view key) const {
  const Setting& setting = Declared(key);
  const Value* found = Present(setting);
  if (found == nullptr) return {};
  if (found->kind() != Value::Kind::kMap) throw Fail(key, Describe(setting, *found, "a mapping"));
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [name, value] : found->map()) {
    if (!value.is_scalar() && !value.is_null()) {
      throw ErrorAt(value.position(), fmt::format("{}{}{}.{}: expected text, found {}", place_,
                                                  place_.empty() ? "" : ".", key, name, value.KindName()));
    }
    entries.emplace_back(name, value.text());
  }
  return entries;
}

namespace {

// A boolean, or a mapping of thresholds.
Binding<ProviderSettings> Breaker() {
  Schema time = Schema::Int().Between(1, 86400);
  static const Bindings<BreakerSettings> thresholds = {
      {Setting("failures", Schema::Int().Between(1, 20), "Launches that failed, at least."),
       &BreakerSettings::failures},
      {Setting("share", Schema::Int().Between(1, 100), "They are at least this part of all.").Unit("percent"),
       &BreakerSettings::share},
      {Setting("window", time, "Older launches do not count."), &BreakerSettings::window},
      {Setting("probe-after", time, "The pause before a launch is tried; it doubles when that fails."),
       &BreakerSettings::probe_after},
      {Setting("probe-max", time, "The longest pause."), &BreakerSettings::probe_max},
  };
  return {Setting("breaker", Schema::OneOf({Schema::Bool(), thresholds.ToSchema()}),
                  "When requests go elsewhere since launches fail here; false: they do not."),
          [](const Section& section, const std::string& key, ProviderSettings& settings) {
            if (section.IsMapping(key)) {
              thresholds.Read(section.Sub(key), settings.breaker);
            } else if (section.IsGiven(key)) {
              settings.breaker.is_on = section.Bool(key);
            }
          }};
}

}  // namespace

const Bindings<ProviderSettings>& CommonSettings() {
  static const Bindings<ProviderSettings> settings = {
      Setting("name", Schema::String(), "Unique name of the provider.").Required(),
      Setting("driver", Schema::String(), "Kind of the provider.").Default("openstack"),
      {Setting("max-concurrency", "Nodes launched at the same time; 0 or less: no bound.").Unit("nodes"),
       &ProviderSettings::max_concurrency},
      {Setting("priority", "Priority of its pools; the lowest is asked first."), &ProviderSettings::priority},
      Breaker(),
  };
  return settings;
}

Schema WithCommonSettings(const Schema& driver_schema) {
  static const Schema common = CommonSettings().ToSchema();
  return driver_schema.kind() == Schema::Kind::kMap ? driver_schema.With(common.settings()) : driver_schema;
}

}  // namespace nodepool::config
