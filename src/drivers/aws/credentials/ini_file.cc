#include "drivers/aws/credentials/ini_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::drivers::aws {
namespace {

// The name in the brackets, with single blanks; empty: the line has none.
std::string SectionName(std::string_view line) {
  std::size_t end = line.find(']');
  if (end == std::string_view::npos) return "";
  std::string name;
  for (const std::string& word : Split(Trim(line.substr(1, end - 1)), ' ')) {
    if (!word.empty()) name += (name.empty() ? "" : " ") + word;
  }
  return name;
}

bool IsComment(std::string_view line) { return line.starts_with('#') || line.starts_with(';'); }

class IniParser {
 public:
  IniFile Parse(std::string_view text) {
    while (!text.empty()) {
      std::size_t end = text.find('\n');
      ++number_;
      AddLine(text.substr(0, end));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
    return std::move(file_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view why) const {
    throw Error(Verdict::kInvalid, fmt::format("line {}: {}", number_, why));
  }

  void AddLine(std::string_view line) {
    std::string_view content = Trim(line);
    if (content.empty() || IsComment(content)) return;
    if (content.starts_with('[')) return BeginSection(content);
    bool is_indented = line.front() == ' ' || line.front() == '\t';
    std::size_t equals = content.find('=');
    if (is_indented && last_ != nullptr) return AddToBlock(content, equals);
    if (section_ == nullptr) Refuse("a setting before the first section");
    if (equals == std::string_view::npos) Refuse("neither a section nor a setting");
    last_ = &(*section_)[Lower(Trim(content.substr(0, equals)))];
    *last_ = {std::string(Trim(content.substr(equals + 1))), {}};
  }

  void BeginSection(std::string_view content) {
    std::string name = SectionName(content);
    if (name.empty()) Refuse("a section without a name");
    section_ = &file_[name];
    last_ = nullptr;
  }

  // Of a setting with a text it is the text's next line.
  void AddToBlock(std::string_view content, std::size_t equals) {
    if (!last_->text.empty() || equals == std::string_view::npos) return;
    std::string key = Lower(Trim(content.substr(0, equals)));
    last_->block[std::move(key)] = std::string(Trim(content.substr(equals + 1)));
  }

  IniFile file_;
  IniSection* section_ = nullptr;
  IniSetting* last_ = nullptr;
  int number_ = 0;
};

}  // namespace

IniFile ParseIni(std::string_view text) { return IniParser().Parse(text); }

std::string IniText(const IniSection& section, const std::string& key) {
  auto found = section.find(key);
  return found == section.end() ? "" : found->second.text;
}

}  // namespace nodepool::drivers::aws
