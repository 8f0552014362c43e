#include "drivers/aws/credentials/profiles.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

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

namespace {

constexpr std::size_t kMaxFile = 1 << 20;

std::string PathOf(const Variables& variables, const char* variable, const char* file) {
  std::string path = VariableIn(variables, variable);
  std::string home = VariableIn(variables, "HOME");
  if (path.empty()) path = std::string("~/.aws/") + file;
  return path.starts_with("~/") ? home + path.substr(1) : path;
}

IniFile ReadIniFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    throw Error(Verdict::kInvalid, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  }
  std::string text(kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFile) throw Error(Verdict::kInvalid, path + " is larger than 1 MiB");
  try {
    return ParseIni(text);
  } catch (const Error& error) {
    throw error.In(path);
  }
}

const IniSection* FindSection(const IniFile& file, const std::string& name) {
  auto found = file.find(name);
  return found == file.end() ? nullptr : &found->second;
}

}  // namespace

std::string VariableIn(const Variables& variables, const std::string& name) {
  auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

const IniSection* Profiles::InConfig(const std::string& profile) const {
  for (const char* form : {"profile {}", "profile \"{}\"", "profile '{}'"}) {
    const IniSection* section = FindSection(config, fmt::format(fmt::runtime(form), profile));
    if (section != nullptr) return section;
  }
  return profile == "default" ? FindSection(config, profile) : nullptr;
}

const IniSection* Profiles::InCredentials(const std::string& profile) const {
  return FindSection(credentials, profile);
}

std::string Profiles::Text(const std::string& profile, const std::string& key) const {
  for (const IniSection* section : {InConfig(profile), InCredentials(profile)}) {
    std::string text = section == nullptr ? "" : IniText(*section, key);
    if (!text.empty()) return text;
  }
  return "";
}

Profiles ReadProfiles(const Variables& variables) {
  Profiles profiles;
  profiles.config_path = PathOf(variables, "AWS_CONFIG_FILE", "config");
  profiles.credentials_path = PathOf(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  profiles.config = ReadIniFile(profiles.config_path);
  profiles.credentials = ReadIniFile(profiles.credentials_path);
  return profiles;
}

std::string ChooseProfile(const Profiles& profiles, const Variables& variables,
                          const std::optional<std::string>& configured) {
  std::string name = configured.value_or("");
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    if (name.empty()) name = VariableIn(variables, variable);
  }
  if (name.empty()) return "default";
  bool is_known = profiles.InConfig(name) != nullptr || profiles.InCredentials(name) != nullptr;
  if (is_known || (name == "default" && !configured)) return name;
  throw Error(Verdict::kInvalid, fmt::format("there is no AWS profile {} in {} or {}", Excerpt(name),
                                             profiles.config_path, profiles.credentials_path));
}

}  // namespace nodepool::drivers::aws
