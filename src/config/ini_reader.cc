#include "config/ini_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace nodepool::config {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view Stripped(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

Expected<Ini> ParseIni(std::string_view text) {
  Ini ini;
  std::map<std::string, IniValue>* section = nullptr;
  IniValue* open = nullptr;  // what an indented line goes on with
  int number = 0;
  auto fail = [&](std::string_view what) { return std::unexpected(ErrorAt({number, 1}, what)); };
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    std::string_view content = Stripped(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (IsBlank(line.front()) && open != nullptr) {
      open->text += "\n" + std::string(content);
      continue;
    }
    if (content.front() == '[') {
      if (content.back() != ']') return fail("expected ] at the end of a section's name");
      std::string name(content.substr(1, content.size() - 2));
      auto [place, is_new] = ini.try_emplace(name);
      if (!is_new) return fail(fmt::format("the section [{}] stands twice in the file", Excerpt(name)));
      section = &place->second;
      open = nullptr;
      continue;
    }
    std::size_t mark = content.find_first_of("=:");
    if (mark == std::string_view::npos || mark == 0) return fail("expected [section] or key = value");
    if (section == nullptr) return fail("the first line has to be a [section]");
    std::string key = LowerCase(Stripped(content.substr(0, mark)));
    std::string_view value = Stripped(content.substr(mark + 1));
    int column =
        static_cast<int>(value.empty() ? line.size() : static_cast<std::size_t>(line.find(value, mark))) + 1;
    auto [place, is_new] = section->try_emplace(key, IniValue{std::string(value), {number, column}});
    if (!is_new) return fail(fmt::format("\"{}\" stands twice in its section", Excerpt(key)));
    open = &place->second;
  }
  return ini;
}

}  // namespace nodepool::config
