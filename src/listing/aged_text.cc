#include "listing/aged_text.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <string_view>

namespace nodepool::listing {

std::string FormatAge(Duration age) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(age);
  auto days = std::chrono::floor<std::chrono::days>(seconds);
  std::chrono::hh_mm_ss rest(seconds - days);
  return fmt::format(FMT_COMPILE("{:02}:{:02}:{:02}:{:02}"), days.count(), rest.hours().count(),
                     rest.minutes().count(), rest.seconds().count());
}

void AgedText::Clear() {
  text_.clear();
  ages_.clear();
}

void AgedText::AppendTo(std::string& out, WallTime now) const {
  std::string_view rest = text_;
  for (const Age& age : ages_) {
    std::string_view before = rest.substr(0, age.place - (text_.size() - rest.size()));
    rest.remove_prefix(before.size());
    out += before;
    Duration passed = now - age.since;
    if (age.style == Style::kClock) {
      out += FormatAge(passed);
    } else {
      out += fmt::format_int(std::chrono::duration_cast<std::chrono::seconds>(passed).count()).str();
    }
  }
  out += rest;
}

}  // namespace nodepool::listing
