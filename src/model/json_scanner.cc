#include "model/json_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/text.h"

namespace nodepool {

namespace {

constexpr char32_t kReplacement = 0xfffd;

bool IsSurrogate(char32_t c) { return c >= 0xd800 && c <= 0xdfff; }

// Removes and returns the first character of `text`; U+FFFD for a byte that begins none.
char32_t TakeCharacter(std::string_view& text) {
  Utf8Character first = FirstCharacter(text);
  text.remove_prefix(first.length);
  return first.is_malformed ? kReplacement : first.code;
}

void AppendUtf8(std::string& out, char32_t c) {
  auto add = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      add(0xe0 | c >> 12);
    } else {
      add(0xf0 | c >> 18);
      add(0x80 | (c >> 12 & 0x3f));
    }
    add(0x80 | (c >> 6 & 0x3f));
  }
  add(0x80 | (c & 0x3f));
}

// Escapes as Python does.
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

// The four digits at the front of `text`, which are removed.
char32_t TakeHex(std::string_view& text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + 4, number, 16);
  text.remove_prefix(4);
  return number;
}

// The character of an escape whose backslash is just before `text`; removes it.
char32_t TakeEscape(std::string_view& text) {
  char letter = text[0];
  text.remove_prefix(1);
  constexpr std::string_view kLetters = "bfnrt";
  constexpr std::string_view kMeant = "\b\f\n\r\t";
  if (std::size_t position = kLetters.find(letter); position != kLetters.npos)
    return static_cast<unsigned char>(kMeant[position]);
  if (letter != 'u') return static_cast<unsigned char>(letter);
  char32_t first = TakeHex(text);
  if (!IsSurrogate(first)) return first;
  if (first < 0xdc00 && text.starts_with("\\u")) {
    std::string_view rest = text.substr(2);
    char32_t second = TakeHex(rest);
    if (second >= 0xdc00 && second <= 0xdfff) {
      text = rest;
      return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    }
  }
  return kReplacement;
}

}  // namespace

// Most text that is read or shown is scanned here: eight bytes at a time.
std::size_t PlainLength(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;
  constexpr std::size_t kStep = sizeof(std::uint64_t);
  // The high bit of a byte is set where the byte is less than `limit`, or equal to `c`. Bytes after
  // the first match may have it set wrongly, too.
  auto less = [](std::uint64_t word, unsigned char limit) { return (word - kOnes * limit) & ~word; };
  auto equal = [&](std::uint64_t word, unsigned char c) { return less(word ^ (kOnes * c), 1); };
  std::size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; i + kStep <= text.size(); i += kStep) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + i, kStep);
      std::uint64_t odd = word | less(word, ' ') | equal(word, '"') | equal(word, '\\') | equal(word, '\x7f');
      odd &= kOnes * 0x80;
      if (odd != 0) return i + static_cast<std::size_t>(std::countr_zero(odd)) / 8;
    }
  }
  auto is_plain = [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; };
  while (i < text.size() && is_plain(text[i])) ++i;
  return i;
}

std::size_t CharacterLength(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and values beyond U+10FFFF.
  bool is_bad = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return is_bad ? 0 : length;
}

void AppendJsonText(std::string& out, std::string_view text, JsonStyle style) {
  if (IsPlain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else if (style == JsonStyle::kPython) {
    AppendEscaped(out, text);
  } else {
    out += boost::json::serialize(boost::json::string_view(text.data(), text.size()));
  }
}

std::string DecodeJsonText(std::string_view written) {
  std::string_view rest = written.substr(1, written.size() - 2);
  std::string text;
  for (;;) {
    std::size_t backslash = rest.find('\\');
    text += rest.substr(0, backslash);
    if (backslash == rest.npos) return text;
    rest.remove_prefix(backslash + 1);
    AppendUtf8(text, TakeEscape(rest));
  }
}

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
