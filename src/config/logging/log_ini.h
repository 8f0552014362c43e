#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log/log_setup.h"
#include "config/yaml/value.h"

namespace nodepool::config {

struct IniValue {
  std::string text;
  Position position;
};

// By section and key; keys are in lower case.
using Ini = std::map<std::string, std::map<std::string, IniValue>>;

// Reads what Python's configparser reads: [sections], "key = value" or "key: value", comments that
// begin a line with # or ;, and values that continue in indented lines. There is no interpolation.
// Errors begin with the line.
Expected<Ini> ParseIni(std::string_view text);

// Parses a literal as Python writes it: numbers, True, False, None, texts in quotes, tuples, lists
// and mappings of them, and the names of constants, such as sys.stdout, which become text. Nothing
// is evaluated. Places are counted from `start`. Errors begin with the place.
Expected<Value> ParsePythonLiteral(std::string_view text, Position start);

// A supported handler of Python's logging package.
struct HandlerClass {
  std::string_view name;
  log::Handler::Kind kind;
  // The constructor's arguments, in Python's order, for INI files, which pass them without names.
  // Those without effect here, such as encodings, are accepted as well.
  std::vector<std::string> arguments;
};

// Finds a class by its name, with or without its packages. Throws Error(kInvalid) at the place of
// `name`.
const HandlerClass& FindHandlerClass(const Value& name);

// Converts a logging file in INI to the equivalent mapping: arguments of handlers get the names
// that their class gives them. Throws Error(kInvalid) that begins with the place.
Value LogDictionary(const Ini& ini);

}  // namespace nodepool::config
