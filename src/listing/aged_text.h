#pragma once

#include <string>
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

}  // namespace nodepool::listing
