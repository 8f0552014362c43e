#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log/log_setup.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// A handler of Python's logging package that we know.
struct HandlerClass {
  std::string_view name;
  log::Handler::Kind kind;
  // The constructor's, in Python's order, for INI files, which give them without names.
  // Those that do not matter here, such as encodings, are accepted all the same.
  std::vector<std::string> arguments;
};

// With or without the packages that it is in. Throws Error(kInvalid) at the place of `name`.
const HandlerClass& FindHandlerClass(const Value& name);

}  // namespace nodepool::config
