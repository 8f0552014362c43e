#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace nodepool {

// Texts as in JSON, between quotation marks.

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

// JSON from outside, longer than this, is refused; a ZooKeeper server's own limit is about the same.
inline constexpr std::size_t kMaxRecordBytes = 1 << 20;

// Scans a JSON text and returns where its values are, without converting them. It accepts what
// Python's json.loads() accepts: beyond the standard the bare tokens NaN, Infinity and -Infinity,
// numbers of any size, halves of surrogate pairs as escapes, repeated keys. It refuses bytes that
// are not UTF-8 and nesting deeper than 100 levels.
//
// Each step consumes what it names and the blanks before it, or fails; after a failure nothing can
// be read any more.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  // The first character of the next token; 0 at the end.
  char Next();
  // Any value; `written` is its text.
  bool Value(std::string_view& written);
  bool Value();
  // A text with its quotation marks.
  bool Text(std::string_view& written);
  // An object: calls `member(key)`, which must consume the value and returns whether it could. The
  // key has its quotation marks.
  template <class F>
  bool Members(F&& member) {
    if (!Enter('{')) return false;
    if (Take('}')) return Leave();
    do {
      std::string_view key;
      if (!Text(key) || !Expect(':', "a colon")) return false;
      if (!member(key)) return false;
    } while (Take(','));
    return Expect('}', "a comma or the end of the object") && Leave();
  }
  // A list: calls `element()` likewise.
  template <class F>
  bool Elements(F&& element) {
    if (!Enter('[')) return false;
    if (Take(']')) return Leave();
    do {
      if (!element()) return false;
    } while (Take(','));
    return Expect(']', "a comma or the end of the list") && Leave();
  }
  // Nothing but blanks is left.
  bool End();

  // What was expected where the scanner failed. It never quotes the text, which may hold secrets.
  Error error() const;

 private:
  bool Enter(char bracket);
  bool Leave();
  bool Take(char c);
  bool Expect(char c, const char* what);
  bool Word(std::string_view word);
  bool Number();
  bool Digits();
  bool TextAt();
  bool Escape();
  bool Fail(const char* expected);
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string_view rest() const { return text_.substr(at_); }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  const char* expected_ = nullptr;
};

}  // namespace nodepool
