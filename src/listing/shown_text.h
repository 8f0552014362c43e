#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace nodepool::listing {

// "DD:HH:MM:SS" in whole seconds, each part at least two digits; a negative duration borrows from the days
// (operations.md 5.3).
std::string FormatAge(Duration age);

// A text whose ages are computed when it is shown.
class AgedText {
 public:
  enum class Style { kSeconds, kClock };  // whole seconds: 61; as by FormatAge(): 00:00:01:01

  // The text so far, to append to.
  std::string& text() { return text_; }
  std::size_t size() const { return text_.size(); }  // without the ages
  void AddAge(WallTime since, Style style) { ages_.push_back({text_.size(), since, style}); }
  void Clear();

  void AppendTo(std::string& out, WallTime now) const;

 private:
  struct Age {
    std::size_t place;  // in the text
    WallTime since;
    Style style;
  };

  std::string text_;
  std::vector<Age> ages_;  // by place
};

inline constexpr std::string_view kCutMark = "\u2026";  // one column wide

// Terminal columns that a text of one line takes: wide characters two, combining
// ones none. Bytes that are not UTF-8 count one each.
std::size_t DisplayWidth(std::string_view text);

// The text of one line; if it takes more than `width` (at least 1) columns, as much of its beginning as fits,
// followed by kCutMark.
std::string CutToWidth(std::string_view text, std::size_t width);

// The text with each UUID, with or without dashes, shortened to its first eight digits and `…`:
// "vm-PoolWorker.cloud-main-986e7f26…".
std::string ShortenUuids(std::string_view text);

// A text of one line, broken at blanks into lines of at most `width` terminal columns; all but the first
// begin with `indent` blanks. A wider word is cut.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent);

// The escape sequence with which a terminal shows a state of any kind of record; empty for words that are not
// a state.
std::string_view StyleOf(std::string_view state);

}  // namespace nodepool::listing
