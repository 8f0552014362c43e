#include "model/record_reader.h"

#include <algorithm>

#include "model/json.h"

namespace nodepool {

namespace json = boost::json;

RecordReader::RecordReader(std::string_view json) {
  Expected<json::object> object = ParseJsonObject(json, &memory_);
  if (object) {
    object_ = std::move(*object);
  } else {
    error_ = object.error();
  }
  is_known_.resize(object_.size());
}

const json::value* RecordReader::Find(std::string_view key) {
  auto found = object_.find(key);
  if (found == object_.end()) return nullptr;
  is_known_[static_cast<std::size_t>(found - object_.begin())] = true;
  return &found->value();
}

const json::value* RecordReader::FindUnlessNull(std::string_view key) {
  const json::value* value = Find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

json::value RecordReader::Take(std::string_view key) {
  const json::value* value = Find(key);
  return value == nullptr ? json::value() : *value;
}

json::object RecordReader::TakeUnknown() {
  json::object unknown;
  auto is_known = is_known_.begin();
  for (const auto& [key, value] : object_) {
    if (!*is_known++) unknown.emplace(key, value);
  }
  return unknown;
}

std::optional<std::string> RecordReader::Text(std::string_view key) {
  const json::value* value = FindUnlessNull(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_number() || value->is_bool()) return WriteJson(*value);
  Fail(key, "a text or null");
  return std::nullopt;
}

std::optional<std::string> RecordReader::TextOr(std::string_view key, std::string_view when_missing) {
  if (!object_.contains(key)) return std::string(when_missing);
  return Text(key);
}

std::string RecordReader::StrictText(std::string_view key) {
  const json::value* value = FindUnlessNull(key);
  if (value == nullptr) return "";
  if (value->is_string()) return std::string(value->get_string());
  Fail(key, "a text or null");
  return "";
}

std::vector<std::string> RecordReader::Texts(std::string_view key) {
  std::vector<std::string> texts;
  const json::value* value = FindUnlessNull(key);
  if (value == nullptr) return texts;
  const json::array* array = value->if_array();
  bool is_good = array != nullptr && std::ranges::all_of(*array, [](const auto& e) { return e.is_string(); });
  if (!is_good) {
    Fail(key, "a list of texts");
    return texts;
  }
  for (const json::value& element : *array) texts.emplace_back(element.get_string());
  return texts;
}

std::optional<std::int64_t> RecordReader::Integer(std::string_view key) {
  const json::value* value = FindUnlessNull(key);
  if (value == nullptr) return std::nullopt;
  std::optional<std::int64_t> number = ToInteger(*value);
  if (!number) Fail(key, "a number or null");
  return number;
}

std::optional<WallTime> RecordReader::Time(std::string_view key) {
  const json::value* value = FindUnlessNull(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    Fail(key, "a time in seconds or null");
    return std::nullopt;
  }
  return FromSeconds(value->to_number<double>());
}

bool RecordReader::Flag(std::string_view key, bool when_missing) {
  const json::value* value = Find(key);
  if (value == nullptr) return when_missing;
  if (value->is_null()) return false;
  if (value->is_bool()) return value->get_bool();
  if (value->is_number()) return value->to_number<double>() != 0;
  Fail(key, "true or false");
  return when_missing;
}

void RecordReader::Fail(std::string_view key, std::string_view expected) {
  if (error_) return;
  error_ = Error(Verdict::kInvalid, fmt::format("\"{}\" is not {}", key, expected));
}

void RecordReader::FailState(const json::value& value) {
  if (error_) return;
  error_ =
      Error(Verdict::kInvalid, fmt::format("\"state\" is {}, which is not a state of this kind of record",
                                           Excerpt(WriteJson(value), 40)));
}

std::optional<std::int64_t> ToInteger(const json::value& value) {
  constexpr double kLimit = 9.2e18;
  switch (value.kind()) {
    case json::kind::int64:
      return value.get_int64();
    case json::kind::uint64:
      return std::numeric_limits<std::int64_t>::max();
    case json::kind::double_:
      return static_cast<std::int64_t>(std::clamp(value.get_double(), -kLimit, kLimit));
    default:
      return std::nullopt;
  }
}

json::value ToValue(const std::optional<std::string>& text) { return text ? json::value(*text) : nullptr; }

json::value ToValue(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : nullptr;
}

json::value ToValue(const std::optional<std::int64_t>& number) {
  return number ? json::value(*number) : nullptr;
}

void AddUnknown(const json::object& unknown, json::object& record) {
  for (const auto& [key, value] : unknown) record.emplace(key, value);
}

}  // namespace nodepool
