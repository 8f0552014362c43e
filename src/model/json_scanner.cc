#include "model/json_scanner.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/json_text.h"

namespace nodepool {
namespace {

constexpr int kMaxDepth = 100;

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

char JsonScanner::Next() {
  while (IsBlank(Peek())) ++at_;
  return Peek();
}

bool JsonScanner::Value(std::string_view& written) {
  Next();
  std::size_t begin = at_;
  if (!Value()) return false;
  written = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonScanner::Value() {
  switch (Next()) {
    case '{':
      return Members([this](std::string_view) { return Value(); });
    case '[':
      return Elements([this] { return Value(); });
    case '"':
      return TextAt();
    case 't':
      return Word("true");
    case 'f':
      return Word("false");
    case 'n':
      return Word("null");
    case 'N':
      return Word("NaN");
    case 'I':
      return Word("Infinity");
    default:
      return Number();
  }
}

bool JsonScanner::Text(std::string_view& written) {
  Next();
  std::size_t begin = at_;
  if (!TextAt()) return false;
  written = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonScanner::End() { return (Next() == '\0' && at_ == text_.size()) || Fail("the end"); }

Error JsonScanner::error() const {
  return {Verdict::kInvalid,
          fmt::format("not valid JSON at byte {}: {} is expected", at_, expected_ ? expected_ : "something")};
}

bool JsonScanner::Enter(char bracket) {
  if (!Expect(bracket, bracket == '{' ? "an object" : "a list")) return false;
  return ++depth_ <= kMaxDepth || Fail("less nesting");
}

bool JsonScanner::Leave() {
  --depth_;
  return true;
}

bool JsonScanner::Take(char c) {
  if (Next() != c) return false;
  ++at_;
  return true;
}

bool JsonScanner::Expect(char c, const char* what) { return Take(c) || Fail(what); }

bool JsonScanner::Word(std::string_view word) {
  if (!rest().starts_with(word)) return Fail("a value");
  at_ += word.size();
  return true;
}

bool JsonScanner::Number() {
  if (Peek() == '-') {
    ++at_;
    if (Peek() == 'I') return Word("Infinity");
  }
  if (Peek() == '0') {
    ++at_;
  } else if (!Digits()) {
    return Fail("a value");
  }
  if (Peek() == '.') {
    ++at_;
    if (!Digits()) return Fail("a digit");
  }
  if (Peek() == 'e' || Peek() == 'E') {
    ++at_;
    if (Peek() == '+' || Peek() == '-') ++at_;
    if (!Digits()) return Fail("a digit");
  }
  return true;
}

bool JsonScanner::Digits() {
  std::size_t begin = at_;
  while (IsDigit(Peek())) ++at_;
  return at_ > begin;
}

bool JsonScanner::TextAt() {
  if (Peek() != '"') return Fail("a text");
  ++at_;
  for (;;) {
    at_ += PlainLength(rest());
    if (at_ == text_.size()) return Fail("the end of a text");
    char c = Peek();
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c == '\\') {
      if (!Escape()) return false;
      continue;
    }
    std::size_t length = static_cast<unsigned char>(c) < ' ' ? 0 : CharacterLength(rest());
    if (length == 0) return Fail("a character in UTF-8 that is not a control character");
    at_ += length;
  }
}

bool JsonScanner::Escape() {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  std::string_view escape = rest().substr(1, 5);
  bool is_letter = !escape.empty() && kLetters.find(escape[0]) != kLetters.npos;
  bool is_hex = escape.size() == 5 && escape[0] == 'u' && std::ranges::all_of(escape.substr(1), IsHex);
  if (!is_letter && !is_hex) return Fail("an escape");
  at_ += is_letter ? 2 : 6;
  return true;
}

bool JsonScanner::Fail(const char* expected) {
  expected_ = expected;
  return false;
}

}  // namespace nodepool
