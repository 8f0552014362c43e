#pragma once

#include <string>

namespace nodepool::builder {

// What is to be said of a file that a build made.
struct ImageCheck {
  std::string fault;  // it is no image; empty: it may be one
  std::string doubt;  // it does not look like its format; empty: it does, or the format is not known here
};

// Reads a few bytes of the file (builder.md 7.1). `format` is the name that disk-image-create has for it.
// Error(kFail): the file cannot be read.
ImageCheck CheckImageFile(const std::string& path, const std::string& format);

}  // namespace nodepool::builder
