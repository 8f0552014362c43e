#include "listing/shown_text.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "model/json.h"

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

namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Unicode blocks whose characters take two columns, and blocks whose characters take none.
constexpr std::array<Range, 17> kWide = {{{0x1100, 0x115f},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0x33ff},
                                          {0x3400, 0x4dbf},
                                          {0x4e00, 0x9fff},
                                          {0xa000, 0xa4cf},
                                          {0xa960, 0xa97f},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0xffe0, 0xffe6},
                                          {0x1f300, 0x1f64f},
                                          {0x1f680, 0x1f6ff},
                                          {0x1f900, 0x1f9ff},
                                          {0x20000, 0x2fffd},
                                          {0x30000, 0x3fffd}}};
constexpr std::array<Range, 12> kCombining = {{{0x0300, 0x036f},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05bd},
                                               {0x0610, 0x061a},
                                               {0x064b, 0x065f},
                                               {0x1ab0, 0x1aff},
                                               {0x1dc0, 0x1dff},
                                               {0x200b, 0x200f},
                                               {0x20d0, 0x20ff},
                                               {0xfe00, 0xfe0f},
                                               {0xfe20, 0xfe2f},
                                               {0xe0100, 0xe01ef}}};

template <std::size_t N>
bool IsIn(const std::array<Range, N>& ranges, char32_t character) {
  return std::ranges::any_of(
      ranges, [character](Range range) { return range.first <= character && character <= range.last; });
}

// Removes and returns the first character of `text`; a malformed byte counts as one character.
char32_t TakeCharacter(std::string_view& text) {
  Utf8Character first = FirstCharacter(text);
  text.remove_prefix(first.length);
  return first.code;
}

std::size_t WidthOf(char32_t character) {
  if (IsIn(kCombining, character)) return 0;
  return IsIn(kWide, character) ? 2 : 1;
}

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  if (IsPlain(text)) return text.size();
  std::size_t width = 0;
  while (!text.empty()) width += WidthOf(TakeCharacter(text));
  return width;
}

std::string CutToWidth(std::string_view text, std::size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::size_t room = width - 1;
  std::string_view rest = text;
  while (true) {
    std::string_view before = rest;
    std::size_t taken = WidthOf(TakeCharacter(rest));
    if (taken > room) return std::string(text.substr(0, text.size() - before.size())) + std::string(kCutMark);
    room -= taken;
  }
}

namespace {

constexpr std::string_view kDashed = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
constexpr std::string_view kPlain = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
constexpr std::size_t kShown = 8;

bool IsAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool HasForm(std::string_view text, std::string_view form) {
  return std::ranges::equal(text, form, [](char c, char expected) {
    return expected == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == expected;
  });
}

// The length of the UUID at the beginning of the text; 0 if there is none.
std::size_t UuidLength(std::string_view text) {
  for (std::string_view form : {kDashed, kPlain}) {
    std::size_t length = form.size();
    bool is_whole = text.size() <= length || !IsAlphanumeric(text[length]);
    if (is_whole && HasForm(text.substr(0, length), form)) return length;
  }
  return 0;
}

}  // namespace

std::string ShortenUuids(std::string_view text) {
  std::string shortened;
  bool is_within_word = false;
  while (!text.empty()) {
    std::size_t length = is_within_word ? 0 : UuidLength(text);
    shortened += text.substr(0, length == 0 ? 1 : kShown);
    if (length != 0) shortened += "\u2026";
    is_within_word = IsAlphanumeric(text.front());
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shortened;
}

std::string Wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string wrapped;
  std::size_t used = 0;
  for (const std::string& word : Split(text, ' ')) {
    std::string shown = CutToWidth(word, std::max<std::size_t>(width - std::min(width, indent), 1));
    std::size_t needed = DisplayWidth(shown);
    if (wrapped.empty()) {
      used = needed;
    } else if (used + 1 + needed <= width) {
      wrapped += ' ';
      used += 1 + needed;
    } else {
      wrapped += '\n' + std::string(indent, ' ');
      used = indent + needed;
    }
    wrapped += shown;
  }
  return wrapped;
}

namespace {

constexpr std::string_view kGood = "\x1b[32m";
constexpr std::string_view kComing = "\x1b[33m";
constexpr std::string_view kWorking = "\x1b[36m";
constexpr std::string_view kStopped = "\x1b[35m";
constexpr std::string_view kBad = "\x1b[31m";
constexpr std::string_view kGoing = "\x1b[2m";

constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kStyles = {
    {{"ready", kGood},       {"fulfilled", kGood}, {"running", kGood},   {"up", kGood},
     {"starting", kComing},  {"failing", kBad},    {"draining", kGoing}, {"init", kComing},
     {"building", kComing},  {"testing", kComing}, {"pending", kComing}, {"requested", kComing},
     {"uploading", kComing}, {"in-use", kWorking}, {"used", kWorking},   {"hold", kStopped},
     {"paused", kStopped},   {"deleting", kGoing}, {"deleted", kGoing},  {"stopped", kGoing},
     {"failed", kBad},       {"aborted", kBad}}};

}  // namespace

std::string_view StyleOf(std::string_view state) {
  auto found = std::ranges::find(kStyles, state, [](const auto& style) { return style.first; });
  return found == kStyles.end() ? std::string_view() : found->second;
}

}  // namespace nodepool::listing
