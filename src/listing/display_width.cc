#include "listing/display_width.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/utf8.h"
#include "model/json.h"

namespace nodepool::listing {
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

}  // namespace nodepool::listing
