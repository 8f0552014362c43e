#include "config/schema/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::config {

struct Schema::Data {
  Kind kind = Kind::kAny;
  std::vector<Setting> settings;
  std::optional<Schema> element;
  std::vector<Schema> choices;
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> required_groups;
  std::vector<std::vector<std::string>> exclusive_groups;
  std::optional<double> min;
  std::optional<double> max;
};

Schema::Schema(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Schema Schema::Any() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kAny})); }
Schema Schema::Null() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kNull})); }
Schema Schema::Bool() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kBool})); }
Schema Schema::Int() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kInt})); }
Schema Schema::Float() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kFloat})); }
Schema Schema::String() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kString})); }
Schema Schema::Among(std::vector<std::string> texts) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kString, .texts = std::move(texts)}));
}

Schema Schema::Number() { return OneOf({Int(), Float()}); }
Schema Schema::Port() { return Int().Between(1, 65535); }

Schema Schema::List(Schema item) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kList, .element = std::move(item)}));
}

Schema Schema::Map(std::vector<Setting> settings) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kMap, .settings = std::move(settings)}));
}

Schema Schema::OpenMap(Schema value) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kOpenMap, .element = std::move(value)}));
}

Schema Schema::MapWithOthers(std::vector<Setting> settings, Schema others) {
  return Schema(std::make_shared<const Data>(
      Data{.kind = Kind::kMap, .settings = std::move(settings), .element = std::move(others)}));
}

Schema Schema::OneOf(std::vector<Schema> choices) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kOneOf, .choices = std::move(choices)}));
}

Schema Schema::RequireOneOf(std::vector<std::string> keys) const {
  Data copy = *data_;
  copy.required_groups.push_back(std::move(keys));
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::Exclusive(std::vector<std::string> keys) const {
  Data copy = *data_;
  copy.exclusive_groups.push_back(std::move(keys));
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::Between(double min, double max) const {
  Data copy = *data_;
  copy.min = min;
  copy.max = max;
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::AtLeast(double min) const {
  Data copy = *data_;
  copy.min = min;
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::AtMost(double max) const {
  Data copy = *data_;
  copy.max = max;
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::With(std::vector<Setting> settings) const {
  Data copy = *data_;
  for (Setting& setting : settings) {
    auto same = std::ranges::find(copy.settings, setting.key, &Setting::key);
    if (same != copy.settings.end()) {
      *same = std::move(setting);
    } else {
      copy.settings.push_back(std::move(setting));
    }
  }
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema::Kind Schema::kind() const { return data_->kind; }
const std::vector<Setting>& Schema::settings() const { return data_->settings; }

const Setting* Schema::Find(std::string_view key) const {
  auto found = std::ranges::find(data_->settings, key, &Setting::key);
  return found == data_->settings.end() ? nullptr : &*found;
}

const Schema* Schema::element() const { return data_->element ? &*data_->element : nullptr; }
const std::vector<Schema>& Schema::choices() const { return data_->choices; }
const std::vector<std::string>& Schema::texts() const { return data_->texts; }
const std::vector<std::vector<std::string>>& Schema::required_groups() const {
  return data_->required_groups;
}
const std::vector<std::vector<std::string>>& Schema::exclusive_groups() const {
  return data_->exclusive_groups;
}
std::optional<double> Schema::min() const { return data_->min; }
std::optional<double> Schema::max() const { return data_->max; }

std::optional<std::string> Schema::OutOfBounds(double number) const {
  bool is_within = (!min() || number >= *min()) && (!max() || number <= *max());
  if (is_within) return std::nullopt;
  if (!max()) return fmt::format("a number of at least {}", *min());
  if (!min()) return fmt::format("a number of at most {}", *max());
  return fmt::format("a number from {} to {}", *min(), *max());
}

std::string Schema::ExpectedName() const {
  switch (kind()) {
    case Kind::kAny:
      return "anything";
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return texts().empty() ? "str" : "one of " + Join(texts(), ", ");
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a dictionary";
    case Kind::kOpenMap:
      return "a dictionary";
    case Kind::kOneOf: {
      std::string names;
      for (const Schema& choice : choices()) names += (names.empty() ? "" : " or ") + choice.ExpectedName();
      return names;
    }
  }
  return "";
}

Setting::Setting(std::string key, Schema schema, std::string help)
    : key(std::move(key)), schema(std::move(schema)), help(std::move(help)) {}

Setting::Setting(std::string key, std::string help)
    : Setting(std::move(key), Schema::Any(), std::move(help)) {}

Setting Setting::Required() && {
  is_required = true;
  return std::move(*this);
}

Setting Setting::RequiredByValidator() && {
  is_required_by_validator = true;
  return std::move(*this);
}

Setting Setting::Default(boost::json::value value) && {
  default_value = std::move(value);
  return std::move(*this);
}

Setting Setting::Inherited() && {
  is_inherited = true;
  return std::move(*this);
}

Setting Setting::Unit(std::string text) && {
  unit = std::move(text);
  return std::move(*this);
}

Setting Setting::NeedsRestart() && {
  needs_restart = true;
  return std::move(*this);
}

Setting Setting::Secret() && {
  is_secret = true;
  return std::move(*this);
}

Setting Setting::DaemonOnly() && {
  is_daemon_only = true;
  return std::move(*this);
}

Setting Setting::Removed(std::string instead) && {
  removed = std::move(instead);
  return std::move(*this);
}

}  // namespace nodepool::config
