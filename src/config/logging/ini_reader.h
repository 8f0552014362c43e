#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/yaml/value.h"

namespace nodepool::config {

struct IniValue {
  std::string text;
  Position position;
};

// By section and key; keys are in lower case.
using Ini = std::map<std::string, std::map<std::string, IniValue>>;

// What Python's configparser reads: [sections], "key = value" or "key: value", comments
// that begin a line with # or ;, and values that go on in lines that are indented. Nothing
// is interpolated. Errors begin with the line.
Expected<Ini> ParseIni(std::string_view text);

}  // namespace nodepool::config
