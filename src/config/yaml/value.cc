#include "config/yaml/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace nodepool::config {

Error ErrorAt(Position position, std::string_view message) {
  return Error(Verdict::kInvalid,
               fmt::format("line {}, column {}: {}", position.line, position.column, message));
}

struct Value::Data {
  Kind kind = Kind::kNull;
  Position position;
  std::string text;
  std::variant<std::monostate, bool, std::int64_t, double, List, Map> content;
};

Value::Value() {
  static const std::shared_ptr<const Data> null = std::make_shared<Data>();
  data_ = null;
}

Value::Value(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Value Value::Null(Position position) {
  return Value(std::make_shared<const Data>(Data{.kind = Kind::kNull, .position = position}));
}

Value Value::Bool(bool value, std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kBool, position, std::move(text), value}));
}

Value Value::Int(std::int64_t value, std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kInt, position, std::move(text), value}));
}

Value Value::Float(double value, std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kFloat, position, std::move(text), value}));
}

Value Value::String(std::string value, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kString, position, std::move(value), {}}));
}

Value Value::Timestamp(std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kTimestamp, position, std::move(text), {}}));
}

Value Value::MakeList(List items, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kList, position, {}, std::move(items)}));
}

Value Value::MakeMap(Map entries, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kMap, position, {}, std::move(entries)}));
}

Value::Kind Value::kind() const { return data_->kind; }
Position Value::position() const { return data_->position; }
bool Value::bool_value() const { return std::get<bool>(data_->content); }
std::int64_t Value::int_value() const { return std::get<std::int64_t>(data_->content); }
double Value::float_value() const { return std::get<double>(data_->content); }
const Value::List& Value::list() const { return std::get<List>(data_->content); }
const Value::Map& Value::map() const { return std::get<Map>(data_->content); }

const std::string& Value::text() const {
  assert(kind() != Kind::kList && kind() != Kind::kMap);
  return data_->text;
}

const Value* Value::Find(std::string_view key) const {
  if (kind() != Kind::kMap) return nullptr;
  for (const auto& [name, value] : map()) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string_view Value::KindName() const {
  switch (kind()) {
    case Kind::kNull:
      return "nothing";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInt:
      return "an integer";
    case Kind::kFloat:
      return "a float";
    case Kind::kString:
      return "a string";
    case Kind::kTimestamp:
      return "a date";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a mapping";
  }
  return "something unknown";
}

boost::json::value Value::ToJson() const {
  switch (kind()) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return bool_value();
    case Kind::kInt:
      return int_value();
    case Kind::kFloat:
      // JSON has no infinity and no NaN.
      if (!std::isfinite(float_value())) return boost::json::string(text());
      return float_value();
    case Kind::kString:
    case Kind::kTimestamp:
      return boost::json::string(text());
    case Kind::kList: {
      boost::json::array array;
      array.reserve(list().size());
      for (const Value& item : list()) array.push_back(item.ToJson());
      return array;
    }
    case Kind::kMap: {
      boost::json::object object;
      object.reserve(map().size());
      for (const auto& [key, value] : map()) object.insert_or_assign(key, value.ToJson());
      return object;
    }
  }
  return nullptr;
}

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsDigitOrGap(char c) { return IsDigit(c) || c == '_'; }
bool IsHexOrGap(char c) { return IsDigitOrGap(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsOctalOrGap(char c) { return (c >= '0' && c <= '7') || c == '_'; }
bool IsBinaryOrGap(char c) { return c == '0' || c == '1' || c == '_'; }

// Reads a scalar from left to right; each Take consumes only what it returns.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  bool AtEnd() const { return rest_.empty(); }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool TakeAnyOf(std::string_view letters) {
    if (rest_.empty() || letters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::size_t TakeWhile(bool (*accepts)(char), std::size_t at_most = std::string_view::npos) {
    std::size_t length = 0;
    while (length < rest_.size() && length < at_most && accepts(rest_[length])) ++length;
    rest_.remove_prefix(length);
    return length;
  }
  bool TakeDigit() { return TakeWhile(IsDigit, 1) == 1; }
  // ":" and a number below 60; at least once.
  bool TakeSixties() {
    bool taken = false;
    while (rest_.size() >= 2 && rest_[0] == ':' && IsDigit(rest_[1])) {
      bool two = rest_.size() >= 3 && IsDigit(rest_[2]);
      if (two && rest_[1] > '5') return false;
      rest_.remove_prefix(two ? 3 : 2);
      taken = true;
    }
    return taken;
  }
  // Optional: e or E, a sign, digits. False when it begins but does not end so.
  bool TakeExponent() {
    if (!TakeAnyOf("eE")) return true;
    return TakeAnyOf("+-") && TakeWhile(IsDigit) > 0;
  }

 private:
  std::string_view rest_;
};

enum class Number {
  kNone,
  kBinary,
  kOctal,
  kDecimal,
  kHex,
  kSixties,
  kFloat,
  kFloatSixties,
  kInfinity,
  kNan
};

Number ClassifyInt(std::string_view unsigned_text) {
  auto all = [](Cursor cursor, bool (*accepts)(char)) {
    return cursor.TakeWhile(accepts) > 0 && cursor.AtEnd();
  };
  Cursor cursor(unsigned_text);
  if (cursor.Take("0b")) return all(cursor, IsBinaryOrGap) ? Number::kBinary : Number::kNone;
  if (cursor.Take("0x")) return all(cursor, IsHexOrGap) ? Number::kHex : Number::kNone;
  if (unsigned_text == "0") return Number::kDecimal;
  if (cursor.Take("0")) return all(cursor, IsOctalOrGap) ? Number::kOctal : Number::kNone;
  if (!cursor.TakeDigit()) return Number::kNone;
  cursor.TakeWhile(IsDigitOrGap);
  if (cursor.AtEnd()) return Number::kDecimal;
  return cursor.TakeSixties() && cursor.AtEnd() ? Number::kSixties : Number::kNone;
}

Number ClassifyFloat(std::string_view unsigned_text, bool has_sign) {
  Cursor cursor(unsigned_text);
  if (cursor.Take(".")) {
    if (unsigned_text == ".inf" || unsigned_text == ".Inf" || unsigned_text == ".INF")
      return Number::kInfinity;
    if (has_sign) return Number::kNone;
    if (unsigned_text == ".nan" || unsigned_text == ".NaN" || unsigned_text == ".NAN") return Number::kNan;
    if (!cursor.TakeDigit()) return Number::kNone;
    cursor.TakeWhile(IsDigitOrGap);
    return cursor.TakeExponent() && cursor.AtEnd() ? Number::kFloat : Number::kNone;
  }
  if (!cursor.TakeDigit()) return Number::kNone;
  cursor.TakeWhile(IsDigitOrGap);
  bool sixties = cursor.TakeSixties();
  if (!cursor.Take(".")) return Number::kNone;
  cursor.TakeWhile(IsDigitOrGap);
  if (sixties) return cursor.AtEnd() ? Number::kFloatSixties : Number::kNone;
  return cursor.TakeExponent() && cursor.AtEnd() ? Number::kFloat : Number::kNone;
}

struct Signed {
  bool negative = false;
  bool has_sign = false;
  std::string_view magnitude;
};

Signed SplitSign(std::string_view text) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return {.magnitude = text};
  return {text[0] == '-', true, text.substr(1)};
}

Number Classify(std::string_view text) {
  Signed parts = SplitSign(text);
  if (parts.magnitude.empty() || !(IsDigit(parts.magnitude[0]) || parts.magnitude[0] == '.'))
    return Number::kNone;
  if (Number kind = ClassifyInt(parts.magnitude); kind != Number::kNone) return kind;
  return ClassifyFloat(parts.magnitude, parts.has_sign);
}

std::string WithoutGaps(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

// Integers are unbounded in the dialect; beyond 64 bits the nearest value is used, since every such
// setting means "very many".
std::int64_t Saturated(double magnitude, bool negative) {
  constexpr double kLimit = 9.2e18;
  if (magnitude > kLimit) {
    return negative ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  }
  auto value = static_cast<std::int64_t>(magnitude);
  return negative ? -value : value;
}

Expected<std::int64_t> ParseInt(std::string_view text, int base) {
  Signed parts = SplitSign(text);
  std::string digits = WithoutGaps(parts.magnitude.substr(base == 2 || base == 16 ? 2 : 0));
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range) {
    return Saturated(std::numeric_limits<double>::infinity(), parts.negative);
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Unexpected(Verdict::kInvalid, fmt::format("'{}' is not a number", Excerpt(text)));
  }
  return parts.negative ? -value : value;
}

double ParseSixties(std::string_view magnitude) {
  double value = 0;
  for (const std::string& group : Split(WithoutGaps(magnitude), ':')) {
    double part = 0;
    std::from_chars(group.data(), group.data() + group.size(), part);
    value = value * 60 + part;
  }
  return value;
}

double ParseFloat(std::string_view magnitude) {
  std::string digits = WithoutGaps(magnitude);
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    return digits.find_first_of("eE") != std::string::npos && digits.find('-') != std::string::npos
               ? 0.0
               : std::numeric_limits<double>::infinity();
  }
  return value;
}

Expected<Value> MakeNumber(Number kind, const std::string& text, Position position) {
  Signed parts = SplitSign(text);
  double sign = parts.negative ? -1 : 1;
  switch (kind) {
    case Number::kBinary:
    case Number::kOctal:
    case Number::kDecimal:
    case Number::kHex: {
      int base = kind == Number::kBinary ? 2 : kind == Number::kOctal ? 8 : kind == Number::kHex ? 16 : 10;
      Expected<std::int64_t> value = ParseInt(text, base);
      if (!value) return std::unexpected(value.error());
      return Value::Int(*value, text, position);
    }
    case Number::kSixties:
      return Value::Int(Saturated(ParseSixties(parts.magnitude), parts.negative), text, position);
    case Number::kFloat:
      return Value::Float(sign * ParseFloat(parts.magnitude), text, position);
    case Number::kFloatSixties:
      return Value::Float(sign * ParseSixties(parts.magnitude), text, position);
    case Number::kInfinity:
      return Value::Float(sign * std::numeric_limits<double>::infinity(), text, position);
    case Number::kNan:
      return Value::Float(std::numeric_limits<double>::quiet_NaN(), text, position);
    case Number::kNone:
      break;
  }
  return Unexpected(Verdict::kInvalid, fmt::format("'{}' is not a number", Excerpt(text)));
}

// Whether the rest of the text is a time of day. A zone such as Z, +1 or -03:30 may end it.
bool IsTimeOfDay(Cursor cursor) {
  if (!cursor.TakeAnyOf("Tt") && cursor.TakeWhile([](char c) { return c == ' ' || c == '\t'; }) == 0)
    return false;
  if (cursor.TakeWhile(IsDigit, 2) == 0 || !cursor.Take(":")) return false;
  if (cursor.TakeWhile(IsDigit, 2) != 2 || !cursor.Take(":") || cursor.TakeWhile(IsDigit, 2) != 2)
    return false;
  if (cursor.Take(".")) cursor.TakeWhile(IsDigit);
  cursor.TakeWhile([](char c) { return c == ' ' || c == '\t'; });
  if (cursor.AtEnd() || (cursor.Take("Z") && cursor.AtEnd())) return true;
  if (!cursor.TakeAnyOf("+-") || cursor.TakeWhile(IsDigit, 2) == 0) return false;
  return cursor.AtEnd() || (cursor.Take(":") && cursor.TakeWhile(IsDigit, 2) == 2 && cursor.AtEnd());
}

bool LooksLikeTimestamp(std::string_view text) {
  if (text.size() < 8 || !std::all_of(text.begin(), text.begin() + 4, IsDigit) || text[4] != '-')
    return false;
  Cursor cursor(text.substr(5));
  std::size_t month = cursor.TakeWhile(IsDigit, 2);
  if (month == 0 || !cursor.Take("-")) return false;
  std::size_t day = cursor.TakeWhile(IsDigit, 2);
  if (day == 0) return false;
  if (cursor.AtEnd()) return month == 2 && day == 2;
  return IsTimeOfDay(cursor);
}

bool IsCalendarDate(std::string_view text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  std::from_chars(text.data(), text.data() + 4, year);
  const char* end = text.data() + text.size();
  const char* after_month = std::from_chars(text.data() + 5, end, month).ptr;
  std::from_chars(after_month + 1, end, day);
  return year > 0 && std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                                 std::chrono::day(day))
                         .ok();
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool IsNullWord(std::string_view text) { return IsOneOf(text, {"", "~", "null", "Null", "NULL"}); }

std::optional<bool> BoolWord(std::string_view text) {
  if (text.empty() || text.size() > 5) return std::nullopt;
  if (IsOneOf(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (IsOneOf(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  return std::nullopt;
}

Expected<std::string> DecodeBase64(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  std::optional<std::string> bytes = FromBase64(text);
  if (!bytes) return Unexpected(Verdict::kInvalid, "!!binary is not base64");
  if (!IsValidUtf8(*bytes)) return Unexpected(Verdict::kInvalid, "!!binary does not hold text");
  return std::move(*bytes);
}

}  // namespace

Expected<Value> ResolvePlainScalar(const std::string& text, Position position) {
  if (IsNullWord(text)) return Value::Null(position);
  if (std::optional<bool> truth = BoolWord(text)) return Value::Bool(*truth, text, position);
  if (Number kind = Classify(text); kind != Number::kNone) return MakeNumber(kind, text, position);
  if (LooksLikeTimestamp(text)) {
    if (IsCalendarDate(text)) return Value::Timestamp(text, position);
    return Unexpected(Verdict::kInvalid, fmt::format("'{}' is not a date; put quotes around text", text));
  }
  if (text == "=" || text == "<<") {
    return Unexpected(Verdict::kInvalid,
                      fmt::format("'{}' has no meaning here; put quotes around text", text));
  }
  return Value::String(text, position);
}

Expected<Value> ResolveTaggedScalar(std::string_view tag, const std::string& text, Position position) {
  constexpr std::string_view kStandard = "tag:yaml.org,2002:";
  std::string_view name = tag.starts_with(kStandard) ? tag.substr(kStandard.size()) : std::string_view();
  if (name == "str") return Value::String(text, position);
  if (name == "null") return Value::Null(position);
  if (name == "bool") {
    if (std::optional<bool> truth = BoolWord(Lower(text))) return Value::Bool(*truth, text, position);
  }
  if (name == "int" || name == "float") {
    Number kind = Classify(text);
    if (kind != Number::kNone) {
      Expected<Value> value = MakeNumber(kind, text, position);
      if (!value) return value;
      if (name == "int" && value->kind() == Value::Kind::kInt) return value;
      if (name == "float" && value->kind() == Value::Kind::kFloat) return value;
      if (name == "float") return Value::Float(static_cast<double>(value->int_value()), text, position);
    }
  }
  if (name == "timestamp" && LooksLikeTimestamp(text) && IsCalendarDate(text)) {
    return Value::Timestamp(text, position);
  }
  if (name == "binary") {
    Expected<std::string> bytes = DecodeBase64(text);
    if (!bytes) return std::unexpected(bytes.error());
    return Value::String(*std::move(bytes), position);
  }
  if (IsOneOf(name, {"bool", "int", "float", "timestamp"})) {
    return Unexpected(Verdict::kInvalid, fmt::format("'{}' does not fit its tag !!{}", Excerpt(text), name));
  }
  return Unexpected(Verdict::kInvalid, fmt::format("the tag '{}' is not supported here", Excerpt(tag)));
}

std::string PythonText(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "";
    case Value::Kind::kBool:
      return value.bool_value() ? "True" : "False";
    case Value::Kind::kInt:
      return fmt::format("{}", value.int_value());
    case Value::Kind::kFloat: {
      std::string text = fmt::format("{}", value.float_value());
      bool is_plain = text.find_first_not_of("-0123456789") == std::string::npos;
      return is_plain ? text + ".0" : text;
    }
    default:
      return value.text();
  }
}

}  // namespace nodepool::config
