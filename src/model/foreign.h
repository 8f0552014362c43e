#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/raw_json.h"

namespace nodepool {

// The parts of a record that the fields do not hold, stored so that a rewrite writes them back
// unchanged (D-04).
struct Foreign {
  // A field whose text differs from the one that we write for its value.
  struct Form {
    std::string key;
    std::string theirs;
    std::string ours;
    bool operator==(const Form&) const = default;
  };

  std::string unknown;      // the unknown members, as they are written, joined by ", "
  std::vector<Form> forms;  // `theirs` is written as long as the field's value would be written as `ours`

  // Adds a member, written as in JSON.
  void AddWritten(std::string_view key, std::string_view value);
  void Add(std::string_view key, const RawJson& value);
  bool operator==(const Foreign&) const = default;
};

}  // namespace nodepool
