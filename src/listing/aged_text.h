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
  void AddAge(WallTime since, Style style) { ages_.push_back({text_.size(), since, style}); }
  void Clear();

  void AppendTo(std::string& out, WallTime now) const;
  // Bytes that AppendTo adds at most.
  std::size_t MaxSize() const { return text_.size() + ages_.size() * kMaxAgeSize; }

 private:
  static constexpr std::size_t kMaxAgeSize = 24;
  struct Age {
    std::size_t place;  // in the text
    WallTime since;
    Style style;
  };

  std::string text_;
  std::vector<Age> ages_;  // by place
};

}  // namespace nodepool::listing
