#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log/log_setup.h"
#include "config/yaml/value.h"

namespace nodepool::config {

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

}  // namespace nodepool::config
