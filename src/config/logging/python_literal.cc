#include "config/logging/python_literal.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "base/text.h"

namespace nodepool::config {
namespace {

constexpr int kDeepest = 20;

class Parser {
 public:
  Parser(std::string_view text, Position start) : text_(text), start_(start) {}

  Value ParseAll() {
    Value value = ParseValue(0);
    SkipBlanks();
    if (place_ < text_.size()) Fail("nothing may follow here");
    return value;
  }

 private:
  Position position() const { return {start_.line, start_.column + static_cast<int>(place_)}; }
  [[noreturn]] void Fail(std::string_view what) const { throw ErrorAt(position(), what); }

  char Peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
  void SkipBlanks() {
    while (std::isspace(static_cast<unsigned char>(Peek())) != 0) ++place_;
  }
  bool Take(char c) {
    SkipBlanks();
    if (Peek() != c) return false;
    ++place_;
    return true;
  }

  Value ParseValue(int depth) {
    if (depth > kDeepest) Fail("this is nested too deeply");
    SkipBlanks();
    Position here = position();
    char c = Peek();
    if (c == '(') return ParseSequence(')', depth, here);
    if (c == '[') return ParseSequence(']', depth, here);
    if (c == '{') return ParseMap(depth, here);
    if (c == '\'' || c == '"') return Value::String(ParseText(), here);
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') return ParseNumber(here);
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') return ParseName(here);
    Fail("expected a number, a text in quotes, a tuple, or a name such as sys.stdout");
  }

  Value ParseSequence(char end, int depth, Position here) {
    ++place_;
    Value::List items;
    while (!Take(end)) {
      items.push_back(ParseValue(depth + 1));
      bool is_first_alone = !Take(',');
      if (!is_first_alone) continue;
      if (!Take(end)) Fail(fmt::format("expected a comma or {}", end));
      // Blanks and parentheses around one value make no tuple.
      if (end == ')' && items.size() == 1) return items.front();
      break;
    }
    return Value::MakeList(std::move(items), here);
  }

  Value ParseMap(int depth, Position here) {
    ++place_;
    Value::Map entries;
    while (!Take('}')) {
      SkipBlanks();
      if (Peek() != '\'' && Peek() != '"') Fail("expected a key in quotes");
      std::string key = ParseText();
      if (!Take(':')) Fail("expected a colon");
      entries.emplace_back(std::move(key), ParseValue(depth + 1));
      if (Take(',')) continue;
      if (!Take('}')) Fail("expected a comma or }");
      break;
    }
    return Value::MakeMap(std::move(entries), here);
  }

  std::string ParseText() {
    char quote = text_[place_++];
    std::string text;
    while (Peek() != quote) {
      if (place_ >= text_.size()) Fail("this text has no closing quote");
      char c = text_[place_++];
      if (c == '\\') {
        char next = Peek();
        ++place_;
        c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
        if (next != 'n' && next != 't' && next != '\\' && next != '\'' && next != '"') {
          Fail("of the escapes only \\n, \\t, \\\\, \\' and \\\" are known");
        }
      }
      text += c;
    }
    ++place_;
    return text;
  }

  Value ParseNumber(Position here) {
    std::size_t first = place_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0 || Peek() == '.' || Peek() == '-') ++place_;
    std::string word(text_.substr(first, place_ - first));
    const char* end = word.data() + word.size();
    std::int64_t whole = 0;
    if (auto [rest, error] = std::from_chars(word.data(), end, whole); error == std::errc() && rest == end) {
      return Value::Int(whole, word, here);
    }
    double number = 0;
    auto [rest, error] = std::from_chars(word.data(), end, number);
    if (error != std::errc() || rest != end)
      throw ErrorAt(here, fmt::format("{} is no number", Excerpt(word)));
    return Value::Float(number, word, here);
  }

  Value ParseName(Position here) {
    std::size_t first = place_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0 || Peek() == '.' || Peek() == '_') ++place_;
    std::string word(text_.substr(first, place_ - first));
    SkipBlanks();
    if (Peek() == '(') Fail("nothing is called here; write the value itself");
    if (word == "None") return Value::Null(here);
    if (word == "True" || word == "False") return Value::Bool(word == "True", word, here);
    return Value::String(std::move(word), here);
  }

  std::string_view text_;
  Position start_;
  std::size_t place_ = 0;
};

}  // namespace

Expected<Value> ParsePythonLiteral(std::string_view text, Position start) {
  try {
    return Parser(text, start).ParseAll();
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

}  // namespace nodepool::config
