#include "process/command.h"

#include <unistd.h>

#include "base/error.h"

namespace nodepool::process {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Reads one word at the front of `rest` and removes it.
class WordReader {
 public:
  explicit WordReader(std::string_view& rest) : rest_(rest) {}

  std::string Read() {
    while (!rest_.empty() && kBlanks.find(rest_.front()) == std::string_view::npos) {
      char c = Take();
      if (c == '\'') {
        ReadSingleQuoted();
      } else if (c == '"') {
        ReadDoubleQuoted();
      } else if (c == '\\') {
        word_ += Need();
      } else {
        word_ += c;
      }
    }
    return std::move(word_);
  }

 private:
  char Take() {
    char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  char Need() {
    if (rest_.empty()) {
      throw Error(Verdict::kInvalid, "a quote is not closed, or a backslash ends the command line");
    }
    return Take();
  }
  void ReadSingleQuoted() {
    for (char c = Need(); c != '\''; c = Need()) word_ += c;
  }
  // A backslash is literal unless it is before a quote or another backslash.
  void ReadDoubleQuoted() {
    for (char c = Need(); c != '"'; c = Need()) {
      if (c != '\\') {
        word_ += c;
        continue;
      }
      char next = Need();
      if (next != '"' && next != '\\') word_ += c;
      word_ += next;
    }
  }

  std::string_view& rest_;
  std::string word_;
};

}  // namespace

std::vector<std::string> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    words.push_back(WordReader(line).Read());
  }
}

Environment OwnEnvironment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return result;
}

}  // namespace nodepool::process
