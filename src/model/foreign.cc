#include "model/foreign.h"

#include "model/json_text.h"

namespace nodepool {

void Foreign::AddWritten(std::string_view key, std::string_view value) {
  if (!unknown.empty()) unknown += ", ";
  unknown += key;
  unknown += ": ";
  unknown += value;
}

void Foreign::Add(std::string_view key, const RawJson& value) {
  std::string written;
  AppendJsonText(written, key, JsonStyle::kPython);
  AddWritten(written, value.text());
}

}  // namespace nodepool
