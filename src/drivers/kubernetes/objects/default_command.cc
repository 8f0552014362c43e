#include "drivers/kubernetes/objects/default_command.h"

#include <boost/json/array.hpp>

#include "base/json_fields.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

const json::array& Command() {
  static const json::array command = {"/bin/sh", "-c"};
  return command;
}

const json::array& Arguments() {
  static const json::array arguments = {"while true; do sleep 30; done;"};
  return arguments;
}

}  // namespace

void SetDefaultCommand(json::object& container) {
  container["command"] = Command();
  container["args"] = Arguments();
}

bool RunsDefaultCommand(const json::object& spec) {
  const json::array* containers = ArrayIn(spec, "containers");
  if (containers == nullptr || containers->size() != 1) return false;
  const json::array* command = ArrayIn(containers->front(), "command");
  const json::array* arguments = ArrayIn(containers->front(), "args");
  return command != nullptr && arguments != nullptr && *command == Command() && *arguments == Arguments();
}

}  // namespace nodepool::drivers::kubernetes
