#pragma once

#include <map>
#include <string>
#include <string_view>

namespace nodepool::drivers::aws {

// A setting: its text, and the settings of the indented block below it, if there is one.
struct IniSetting {
  std::string text;
  std::map<std::string, std::string> block;
};
using IniSection = std::map<std::string, IniSetting>;

// The sections of a file by the name in their brackets (driver-aws.md 3.2).
using IniFile = std::map<std::string, IniSection>;

// Error(kInvalid) names the line; nothing of the content, which may be secret.
IniFile ParseIni(std::string_view text);

// Empty: there is no such setting.
std::string IniText(const IniSection& section, const std::string& key);

}  // namespace nodepool::drivers::aws
