#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Texts as in JSON, between quotation marks.
namespace nodepool {

// How JSON is written: compact as boost::json::serialize() does, or as Python's json.dumps()
// does: ", " and ": " as separators, ASCII only, doubles in their shortest form.
enum class JsonStyle { kCompact, kPython };
constexpr std::string_view CommaOf(JsonStyle style) { return style == JsonStyle::kCompact ? "," : ", "; }
constexpr std::string_view ColonOf(JsonStyle style) { return style == JsonStyle::kCompact ? ":" : ": "; }

// How many bytes at the front of `text` are written unchanged in JSON: printable ASCII without
// quotation marks and backslashes.
std::size_t PlainLength(std::string_view text);
inline bool IsPlain(std::string_view text) { return PlainLength(text) == text.size(); }

// How many bytes the character at the front of `text` has, which is not empty; 0 if it is not UTF-8.
std::size_t CharacterLength(std::string_view text);

// Appends `text` with quotation marks. In Python's style bytes that are not UTF-8 become U+FFFD.
void AppendJsonText(std::string& out, std::string_view text, JsonStyle style);

// The value of a valid JSON string, `written` with its quotation marks. Half a surrogate pair, for
// which UTF-8 has no bytes, becomes U+FFFD.
std::string DecodeJsonText(std::string_view written);

}  // namespace nodepool
