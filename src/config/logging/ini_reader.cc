#include "config/logging/ini_reader.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nodepool::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";

}  // namespace

Expected<Ini> ParseIni(std::string_view text) {
  Ini ini;
  std::map<std::string, IniValue>* section = nullptr;
  IniValue* open = nullptr;  // what an indented line goes on with
  int number = 0;
  auto fail = [&](std::string_view what) { return std::unexpected(ErrorAt({number, 1}, what)); };
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    std::string_view content = Trim(line, kBlanks);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (kBlanks.contains(line.front()) && open != nullptr) {
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
    std::string key = Lower(Trim(content.substr(0, mark), kBlanks));
    std::string_view value = Trim(content.substr(mark + 1), kBlanks);
    int column =
        static_cast<int>(value.empty() ? line.size() : static_cast<std::size_t>(line.find(value, mark))) + 1;
    auto [place, is_new] = section->try_emplace(key, IniValue{std::string(value), {number, column}});
    if (!is_new) return fail(fmt::format("\"{}\" stands twice in its section", Excerpt(key)));
    open = &place->second;
  }
  return ini;
}

}  // namespace nodepool::config
