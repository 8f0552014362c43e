#pragma once

#include <string>
#include <vector>

#include "process/command.h"

namespace nodepool::process {

// A program's arguments or environment, in the form that the system call takes.
class Texts {
 public:
  explicit Texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// "KEY=value" of each variable.
inline std::vector<std::string> EntriesOf(const Environment& environment) {
  std::vector<std::string> entries;
  for (const auto& [key, value] : environment) entries.push_back(key + "=" + value);
  return entries;
}

}  // namespace nodepool::process
