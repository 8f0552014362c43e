#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/schema/section.h"

namespace nodepool::drivers::libvirt {

// The words that a setting may have, each with what it stands for.
template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;

// The value that the setting's word stands for; `otherwise` where it is not set.
template <class T>
T ReadWord(const config::Section& section, std::string_view key, const Words<T>& words, T otherwise) {
  std::optional<std::string> text = section.OptionalText(key);
  if (!text) return otherwise;
  auto found = std::ranges::find(words, std::string_view(*text), &std::pair<std::string_view, T>::first);
  if (found != words.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [word, value] : words) known.emplace_back(word);
  throw section.Fail(key, fmt::format("expected one of {}, found {}", Join(known, ", "), Excerpt(*text)));
}

}  // namespace nodepool::drivers::libvirt
