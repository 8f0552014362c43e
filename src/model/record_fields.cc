#include "model/record_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/json.h"
#include "model/json_scanner.h"

namespace nodepool {

namespace codec {
namespace {

// No machine has this much of any resource, and sums of many remain exact.
constexpr double kMaxOfAResource = 1e9;

}  // namespace

bool IsNumber(std::string_view written) {
  char first = written[0];
  return first == '-' || (first >= '0' && first <= '9') || first == 'N' || first == 'I';
}

std::optional<double> FiniteNumber(std::string_view written) {
  double number = 0;
  auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), number);
  if (!IsNumber(written) || error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::int64_t Truncated(double number) {
  constexpr double kLimit = 9.2e18;
  return static_cast<std::int64_t>(std::clamp(number, -kLimit, kLimit));
}

Reading ReadStrictText(std::string_view written, std::string& text) {
  if (written[0] != '"') return Reading::kWrong;
  std::string_view inside = written.substr(1, written.size() - 2);
  if (IsPlain(inside)) {
    text = inside;
    return Reading::kOurs;
  }
  text = DecodeJsonText(written);
  return Reading::kOther;
}

Reading ReadText(std::string_view written, std::optional<std::string>& text) {
  switch (written[0]) {
    case '"':
      return ReadStrictText(written, text.emplace());
    case 'n':
      text.reset();
      return Reading::kOurs;
    case '{':
    case '[':
      return Reading::kWrong;
    case 'N':
    case 'I':
      text.reset();
      return Reading::kOther;
    default:
      text = written == "-Infinity" ? std::nullopt : std::optional<std::string>(written);
      return Reading::kOther;
  }
}

Reading ReadTime(std::string_view written, std::optional<WallTime>& time) {
  if (written != "null" && !IsNumber(written)) return Reading::kWrong;
  std::optional<double> seconds = FiniteNumber(written);
  time = seconds ? std::optional(FromSeconds(*seconds)) : std::nullopt;
  // Times in the form that clocks produce are written back unchanged.
  bool is_usual = seconds && *seconds > 0x1p30 && *seconds < 0x1p32 && written.find('.') != written.npos &&
                  written.find_first_of("eE") == written.npos;
  return is_usual || written == "null" ? Reading::kOurs : Reading::kOther;
}

void WriteNumber(std::string& out, double number) {
  AppendJson(out, NumberValue(number), JsonStyle::kPython);
}

namespace {

Reading ReadInteger(std::string_view written, std::optional<std::int64_t>& number) {
  number.reset();
  if (written == "null") return Reading::kOurs;
  if (!IsNumber(written)) return Reading::kWrong;
  std::int64_t whole = 0;
  auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), whole);
  if (error == std::errc() && end == written.data() + written.size()) {
    number = whole;
  } else if (std::optional<double> any = FiniteNumber(written)) {
    number = Truncated(*any);
  }
  return Reading::kOther;
}

}  // namespace
}  // namespace codec

void Codec<std::optional<std::string>>::Write(std::string& out, const std::optional<std::string>& text) {
  text ? AppendJsonText(out, *text, JsonStyle::kPython) : void(out += "null");
}

Reading Codec<std::string>::Read(std::string_view written, std::string& text) {
  std::optional<std::string> read;
  Reading reading = codec::ReadText(written, read);
  if (reading != Reading::kWrong) text = std::move(read).value_or("");
  return reading;
}

void Codec<std::string>::Write(std::string& out, const std::string& text) {
  AppendJsonText(out, text, JsonStyle::kPython);
}

void Codec<std::optional<WallTime>>::Write(std::string& out, const std::optional<WallTime>& time) {
  time ? Codec<WallTime>::Write(out, *time) : void(out += "null");
}

Reading Codec<WallTime>::Read(std::string_view written, WallTime& time) {
  std::optional<WallTime> read;
  Reading reading = codec::ReadTime(written, read);
  if (read) time = *read;
  return reading;
}

void Codec<WallTime>::Write(std::string& out, WallTime time) {
  AppendJson(out, boost::json::value(ToSeconds(time)), JsonStyle::kPython);
}

Reading Codec<std::optional<std::int64_t>>::Read(std::string_view written,
                                                 std::optional<std::int64_t>& number) {
  return codec::ReadInteger(written, number);
}

void Codec<std::optional<std::int64_t>>::Write(std::string& out, const std::optional<std::int64_t>& number) {
  number ? Codec<std::int64_t>::Write(out, *number) : void(out += "null");
}

Reading Codec<std::int64_t>::Read(std::string_view written, std::int64_t& number) {
  std::optional<std::int64_t> read;
  Reading reading = codec::ReadInteger(written, read);
  number = read.value_or(number);
  return reading;
}

void Codec<std::int64_t>::Write(std::string& out, std::int64_t number) {
  out += fmt::format_int(number).str();
}

Reading Codec<bool>::Read(std::string_view written, bool& claim) {
  if (written == "true" || written == "false") {
    claim = written == "true";
    return Reading::kOurs;
  }
  if (written != "null" && !codec::IsNumber(written)) return Reading::kWrong;
  claim = codec::FiniteNumber(written).value_or(0) != 0;
  return Reading::kOther;
}

void Codec<bool>::Write(std::string& out, bool claim) { out += claim ? "true" : "false"; }

Reading Codec<std::optional<Resources>>::Read(std::string_view written, std::optional<Resources>& resources) {
  resources.reset();
  if (written == "null") return Reading::kOurs;
  if (written[0] != '{') return Reading::kWrong;
  Reading reading = Reading::kOurs;
  Resources amounts;
  JsonScanner in(written);
  bool is_good = in.Members([&](std::string_view key) {
    std::string_view amount;
    if (!in.Value(amount)) return false;
    if (amount.find_first_not_of("0123456789") != amount.npos) reading = Reading::kOther;
    if (amount != "null" && !codec::IsNumber(amount)) return false;
    std::optional<double> number = codec::FiniteNumber(amount);
    if (!number) return true;
    if (*number < 0 || *number > codec::kMaxOfAResource) return false;
    std::string name;
    if (codec::ReadStrictText(key, name) == Reading::kOther) reading = Reading::kOther;
    amounts[std::move(name)] = *number;
    return true;
  });
  if (!is_good) return Reading::kWrong;
  resources = std::move(amounts);
  return reading;
}

void Codec<std::optional<Resources>>::Write(std::string& out, const std::optional<Resources>& resources) {
  if (!resources) {
    out += "null";
    return;
  }
  std::string_view separator = "{";
  for (const auto& [name, amount] : *resources) {
    out += std::exchange(separator, ", ");
    AppendJsonText(out, name, JsonStyle::kPython);
    out += ": ";
    codec::WriteNumber(out, amount);
  }
  out += resources->empty() ? "{}" : "}";
}

Reading Codec<boost::json::value>::Read(std::string_view written, boost::json::value& value) {
  value = JsonValueOf(written);
  return written == "null" ? Reading::kOurs : Reading::kOther;
}

void Codec<boost::json::value>::Write(std::string& out, const boost::json::value& value) {
  AppendJson(out, value, JsonStyle::kPython);
}

Reading Codec<RawJson>::Read(std::string_view written, RawJson& json) {
  json = RawJson::OfText(written);
  return Reading::kOurs;
}

std::optional<std::size_t> RecordKeys::Find(std::string_view key, std::size_t guess) const {
  if (guess < size_ && keys_[guess] == key) return guess;
  auto end = keys_.begin() + static_cast<std::ptrdiff_t>(size_);
  auto found = std::find(keys_.begin(), end, key);
  if (found == end) return std::nullopt;
  return static_cast<std::size_t>(found - keys_.begin());
}

RecordReader::RecordReader(std::string_view text, const RecordKeys& keys, Foreign& foreign)
    : foreign_(foreign) {
  if (text.size() <= kMaxRecordBytes) {
    Split(text, keys);
  } else {
    error_ = Error(Verdict::kInvalid, fmt::format("the record has {} bytes; at most {} are accepted",
                                                  text.size(), kMaxRecordBytes));
  }
}

void RecordReader::Split(std::string_view text, const RecordKeys& keys) {
  JsonScanner in(text);
  std::size_t guess = 0;
  auto take = [&](std::string_view written_key) {
    std::string_view value;
    if (!in.Value(value)) return false;
    std::string_view key = written_key.substr(1, written_key.size() - 2);
    std::string decoded;
    if (key.find('\\') != key.npos) key = decoded = DecodeJsonText(written_key);
    if (std::optional<std::size_t> place = keys.Find(key, guess)) {
      values_[*place] = value;
      guess = *place + 1;
    } else {
      foreign_.AddWritten(written_key, value);
    }
    return true;
  };
  bool is_object = in.Next() == '{';
  bool is_good = (is_object ? in.Members(take) : in.Value()) && in.End();
  if (!is_good) {
    error_ = in.error();
  } else if (!is_object) {
    error_ = Error(Verdict::kInvalid, "not a JSON object");
  }
}

void RecordReader::Fail(std::string_view key, std::string_view written, std::string_view expected) {
  if (error_) return;
  // States are not secret; other fields may hold secrets.
  std::string what = key == "state" ? fmt::format("{}, which is ", Excerpt(written, 40)) : "";
  error_ = Error(Verdict::kInvalid, fmt::format("\"{}\" is {}not {}", key, what, expected));
}

std::string RecordWriter::TakeText() {
  if (!foreign_.unknown.empty()) {
    if (out_.size() > 1) out_ += ", ";
    out_ += foreign_.unknown;
  }
  out_ += '}';
  return std::move(out_);
}

void RecordWriter::BeginMember(std::string_view key) {
  if (out_.size() > 1) out_ += ", ";
  out_ += '"';
  out_ += key;
  out_ += "\": ";
}

void RecordWriter::KeepForm(std::string_view key, std::size_t begin) {
  std::string_view written = std::string_view(out_).substr(begin);
  auto is_unchanged = [&](const Foreign::Form& form) { return form.key == key && form.ours == written; };
  auto form = std::ranges::find_if(foreign_.forms, is_unchanged);
  if (form != foreign_.forms.end()) out_.replace(begin, out_.npos, form->theirs);
}

}  // namespace nodepool
