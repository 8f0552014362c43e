#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace nodepool::drivers::kubernetes {

// Makes lines of pieces of text as they arrive.
class LineSplitter {
 public:
  // `on_line` gets each line without its end; false: no more is wanted.
  using OnLine = std::function<bool(std::string_view line)>;
  LineSplitter(std::size_t longest, OnLine on_line) : longest_(longest), on_line_(std::move(on_line)) {}

  // False: a line is too long, or no more is wanted.
  bool Add(std::string_view text) {
    while (true) {
      std::size_t end = text.find('\n');
      if (end == std::string_view::npos) break;
      if (begun_.size() + end > longest_) return false;
      std::string_view line = text.substr(0, end);
      if (!begun_.empty()) line = begun_.append(line);
      bool goes_on = line.empty() || on_line_(line);
      begun_.clear();
      if (!goes_on) return false;
      text.remove_prefix(end + 1);
    }
    if (begun_.size() + text.size() > longest_) return false;
    begun_.append(text);
    return true;
  }

 private:
  std::size_t longest_;
  OnLine on_line_;
  std::string begun_;
};

}  // namespace nodepool::drivers::kubernetes
