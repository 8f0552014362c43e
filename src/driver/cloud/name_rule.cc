#include "driver/cloud/name_rule.h"

#include <algorithm>

namespace nodepool::driver::cloud {

bool NameRule::Permits(std::string_view text) const {
  auto is_letter = [this](char c) {
    return (c >= 'a' && c <= 'z') || (may_have_capitals && c >= 'A' && c <= 'Z');
  };
  auto is_mark = [this](char c) { return marks.find(c) != std::string_view::npos; };
  if (text.size() < least || text.size() > most) return false;
  if (text.empty()) return true;
  if (begins_with_letter && !is_letter(text.front())) return false;
  if (!may_end_with_mark && is_mark(text.back())) return false;
  return std::ranges::all_of(text,
                             [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || is_mark(c); });
}

}  // namespace nodepool::driver::cloud
