#include "model/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <cstring>

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 100;

// Builds the value while the text is parsed. It exists because the library's own
// builder rounds doubles twice: time stamps would drift at every rewrite.
struct Builder {
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  using Code = json::error_code;

  json::storage_ptr memory;
  unsigned char first[4096];
  json::value_stack stack{{}, first, sizeof(first)};

  explicit Builder(json::storage_ptr where) : memory(std::move(where)) {}

  bool on_document_begin(Code&) {
    stack.reset(memory);
    return true;
  }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t size, Code&) {
    stack.push_object(size);
    return true;
  }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t size, Code&) {
    stack.push_array(size);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, Code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, Code&) {
    stack.push_key(part);
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, Code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, Code&) {
    stack.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, Code&) {
    stack.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, json::string_view, Code&) {
    stack.push_uint64(number);
    return true;
  }
  // The text comes in one piece, so `digits` is the whole number.
  bool on_double(double, json::string_view digits, Code&) {
    double number = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc()) {
      stack.push_double(number);
    } else {
      stack.push_null();
    }
    return true;
  }
  bool on_bool(bool claim, Code&) {
    stack.push_bool(claim);
    return true;
  }
  bool on_null(Code&) {
    stack.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }
};

// Puts null in the place of Python's non-finite tokens outside strings.
std::string WithoutNonFinite(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    std::string_view rest = text.substr(i);
    std::size_t token = 0;
    if (!in_string) {
      for (std::string_view name : {"-Infinity", "Infinity", "NaN"}) {
        if (rest.starts_with(name)) token = name.size();
      }
    }
    if (token != 0) {
      result += "null";
      i += token;
      continue;
    }
    std::size_t length = in_string && text[i] == '\\' && rest.size() > 1 ? 2 : 1;
    if (text[i] == '"') in_string = !in_string;
    result += rest.substr(0, length);
    i += length;
  }
  return result;
}

// Decodes the character at the front of `text` and removes it; U+FFFD for a byte
// that begins no valid one.
char32_t TakeCharacter(std::string_view& text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  std::size_t length = first < 0x80                    ? 1
                       : first >= 0xf0 && first < 0xf5 ? 4
                       : first >= 0xe0                 ? 3
                       : first >= 0xc2                 ? 2
                                                       : 0;
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  char32_t character = length == 1 ? first : first & (0x7f >> length);
  bool is_valid = length != 0 && first < 0xf5 && length <= text.size();
  for (std::size_t i = 1; is_valid && i < length; ++i) {
    is_valid = (byte(i) & 0xc0) == 0x80;
    character = character << 6 | (byte(i) & 0x3f);
  }
  is_valid = is_valid && character >= kLeast[length] && character <= 0x10ffff &&
             (character < 0xd800 || character > 0xdfff);
  text.remove_prefix(is_valid ? length : 1);
  return is_valid ? character : 0xfffd;
}

// As Python does.
void AppendEscaped(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    char32_t c = TakeCharacter(text);
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    std::size_t position = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (position != std::string_view::npos) {
      out += '\\';
      out += kLetters[position];
    } else if (c >= 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else if (c < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      std::uint32_t offset = static_cast<std::uint32_t>(c) - 0x10000;
      fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}", 0xd800 + (offset >> 10),
                     0xdc00 + (offset & 0x3ff));
    }
  }
  out += '"';
}

void AppendText(std::string& out, std::string_view text, JsonStyle style) {
  if (IsPlain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else if (style == JsonStyle::kPython) {
    AppendEscaped(out, text);
  } else {
    out += json::serialize(json::string_view(text.data(), text.size()));
  }
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
    AppendText(out, key, style);
    out += ColonOf(style);
    AppendJson(out, value, style);
  }
  out += '}';
}

}  // namespace

// Most of what is shown goes through here: eight bytes at a time, the last eight once more for what
// is left of them.
bool IsPlain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;
  // The high bit of a byte is set where the byte is less than `limit`; likewise where it is `c`.
  auto less = [](std::uint64_t word, unsigned char limit) { return (word - kOnes * limit) & ~word; };
  auto equal = [&](std::uint64_t word, unsigned char c) { return less(word ^ (kOnes * c), 1); };
  auto is_odd = [&](const char* place) {
    std::uint64_t word;
    std::memcpy(&word, place, sizeof(word));
    std::uint64_t odd = word | less(word, ' ') | equal(word, '"') | equal(word, '\\') | equal(word, '\x7f');
    return (odd & (kOnes * 0x80)) != 0;
  };
  constexpr std::size_t kStep = sizeof(std::uint64_t);
  if (text.size() < kStep) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
  }
  for (std::size_t i = 0; i + kStep <= text.size(); i += kStep) {
    if (is_odd(text.data() + i)) return false;
  }
  return !is_odd(text.data() + text.size() - kStep);
}

Expected<json::object> ParseJsonObject(std::string_view text, json::storage_ptr memory) {
  if (text.size() > kMaxRecordBytes) {
    return Unexpected(Verdict::kInvalid, fmt::format("the record has {} bytes; at most {} are accepted",
                                                     text.size(), kMaxRecordBytes));
  }
  std::string replaced;
  if (text.find("NaN") != text.npos || text.find("Infinity") != text.npos) {
    replaced = WithoutNonFinite(text);
    text = replaced;
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::basic_parser<Builder> parser(options, std::move(memory));
  json::error_code error;
  std::size_t parsed = parser.write_some(false, text.data(), text.size(), error);
  if (!error && parsed < text.size()) error = json::error::extra_data;
  if (error) {
    return Unexpected(Verdict::kInvalid,
                      fmt::format("not valid JSON at byte {}: {}", parsed, error.message()));
  }
  json::value value = parser.handler().stack.release();
  if (!value.is_object()) return Unexpected(Verdict::kInvalid, "not a JSON object");
  return std::move(value.get_object());
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
      AppendText(out, value.get_string(), style);
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
    AppendText(out, *text, style);
  } else {
    AppendJson(out, cell.value(), style);
  }
}

std::string WriteJson(const json::value& value) {
  std::string out;
  AppendJson(out, value, JsonStyle::kPython);
  return out;
}

}  // namespace nodepool
