#include "model/json.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>

namespace nodepool {

namespace json = boost::json;

Cell Cell::OfWritten(std::string_view json) {
  if (json == "null") return {};
  if (json.starts_with('"')) return DecodeJsonText(json);
  return Cell(Content(Written{json}));
}

boost::json::value Cell::Copy() const {
  if (std::optional<std::string_view> text = this->text()) return boost::json::value(*text);
  if (std::optional<std::string_view> json = written()) return JsonValueOf(*json);
  return value();
}

namespace {

template <class T>
bool ReadNumber(std::string_view written, T& number) {
  const char* end = written.data() + written.size();
  auto [stop, error] = std::from_chars(written.data(), end, number);
  return error == std::errc() && stop == end;
}

// Doubles are read here because the library rounds them twice: time stamps would drift at every
// rewrite.
json::value BuildNumber(std::string_view written) {
  if (std::int64_t number = 0; ReadNumber(written, number)) return number;
  if (std::uint64_t number = 0; ReadNumber(written, number)) return number;
  if (double number = 0; ReadNumber(written, number) && std::isfinite(number)) return number;
  return nullptr;
}

bool Build(JsonScanner& in, json::value& value) {
  switch (in.Next()) {
    case '{': {
      json::object& object = value.emplace_object();
      return in.Members([&](std::string_view key) { return Build(in, object[DecodeJsonText(key)]); });
    }
    case '[': {
      json::array& array = value.emplace_array();
      return in.Elements([&] { return Build(in, array.emplace_back(nullptr)); });
    }
    default:
      break;
  }
  std::string_view written;
  if (!in.Value(written)) return false;
  switch (written[0]) {
    case '"':
      value = DecodeJsonText(written);
      break;
    case 't':
    case 'f':
      value = written[0] == 't';
      break;
    case 'n':
      value = nullptr;
      break;
    default:
      value = BuildNumber(written);
  }
  return true;
}

void AppendDouble(std::string& out, double number, JsonStyle style) {
  if (style == JsonStyle::kCompact) {
    out += json::serialize(json::value(number));
    return;
  }
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::string text = fmt::format("{}", number);
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void AppendArray(std::string& out, const json::array& array, JsonStyle style) {
  std::string_view separator = "";
  out += '[';
  for (const json::value& element : array) {
    out += std::exchange(separator, CommaOf(style));
    AppendJson(out, element, style);
  }
  out += ']';
}

void AppendObject(std::string& out, const json::object& object, JsonStyle style) {
  std::string_view separator = "";
  out += '{';
  for (const auto& [key, value] : object) {
    out += std::exchange(separator, CommaOf(style));
    AppendJsonText(out, key, style);
    out += ColonOf(style);
    AppendJson(out, value, style);
  }
  out += '}';
}

bool AppendNext(std::string& out, JsonScanner& in, JsonStyle style) {
  std::string_view separator = "";
  char first = in.Next();
  if (first == '{') {
    out += '{';
    in.Members([&](std::string_view key) {
      out += std::exchange(separator, CommaOf(style));
      AppendJsonText(out, DecodeJsonText(key), style);
      out += ColonOf(style);
      return AppendNext(out, in, style);
    });
    out += '}';
  } else if (first == '[') {
    out += '[';
    in.Elements([&] {
      out += std::exchange(separator, CommaOf(style));
      return AppendNext(out, in, style);
    });
    out += ']';
  } else if (std::string_view written; in.Value(written)) {
    if (first == '"') {
      AppendJsonText(out, DecodeJsonText(written), style);
    } else {
      // NaN and Infinity, which Python writes, are no JSON.
      bool is_finite = first != 'N' && !written.ends_with('y');
      out += is_finite ? written : "null";
    }
  }
  return true;
}

}  // namespace

Expected<json::object> ParseJsonObject(std::string_view text) {
  if (text.size() > kMaxRecordBytes) {
    return Unexpected(Verdict::kInvalid, fmt::format("the record has {} bytes; at most {} are accepted",
                                                     text.size(), kMaxRecordBytes));
  }
  JsonScanner in(text);
  json::value value;
  if (!Build(in, value) || !in.End()) return std::unexpected(in.error());
  if (!value.is_object()) return Unexpected(Verdict::kInvalid, "not a JSON object");
  return std::move(value.get_object());
}

json::value JsonValueOf(std::string_view valid) {
  JsonScanner in(valid);
  json::value value;
  Build(in, value);
  return value;
}

void AppendJson(std::string& out, const json::value& value, JsonStyle style) {
  switch (value.kind()) {
    case json::kind::null:
      out += "null";
      break;
    case json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case json::kind::int64:
      out += fmt::format_int(value.get_int64()).str();
      break;
    case json::kind::uint64:
      out += fmt::format_int(value.get_uint64()).str();
      break;
    case json::kind::double_:
      AppendDouble(out, value.get_double(), style);
      break;
    case json::kind::string:
      AppendJsonText(out, value.get_string(), style);
      break;
    case json::kind::array:
      AppendArray(out, value.get_array(), style);
      break;
    case json::kind::object:
      AppendObject(out, value.get_object(), style);
      break;
  }
}

void AppendJson(std::string& out, const Cell& cell, JsonStyle style) {
  if (std::optional<std::string_view> text = cell.text()) {
    AppendJsonText(out, *text, style);
  } else if (std::optional<std::string_view> written = cell.written()) {
    AppendValidJson(out, *written, style);
  } else {
    AppendJson(out, cell.value(), style);
  }
}

void AppendValidJson(std::string& out, std::string_view valid, JsonStyle style) {
  JsonScanner in(valid);
  AppendNext(out, in, style);
}

std::string WriteJson(const json::value& value) {
  std::string out;
  AppendJson(out, value, JsonStyle::kPython);
  return out;
}

json::value NumberValue(double number) {
  constexpr double kExact = 9007199254740992;  // 2^53
  bool is_whole = number == std::floor(number) && std::abs(number) <= kExact;
  return is_whole ? json::value(static_cast<std::int64_t>(number)) : json::value(number);
}

json::object Amounts(const Resources& resources) {
  json::object amounts;
  amounts.reserve(resources.size());
  for (const auto& [resource, amount] : resources) {
    if (!std::isfinite(amount)) continue;
    bool is_whole = std::abs(amount) < 1e15 && amount == std::floor(amount);
    amounts[resource] = is_whole ? json::value(static_cast<std::int64_t>(amount)) : json::value(amount);
  }
  return amounts;
}

}  // namespace nodepool
