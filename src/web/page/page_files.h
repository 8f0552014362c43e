#pragma once

#include <span>
#include <string_view>

namespace nodepool::web {

// A file of the browser's page, which is part of the program.
struct PageFile {
  std::string_view name;  // "main.js"
  std::string_view content_type;
  std::string_view plain;
  std::string_view gzip;  // the same, compressed
  std::string_view tag;   // an ETag of the content, in quotes
};

// All of src/web/page/files.
std::span<const PageFile> PageFiles();

}  // namespace nodepool::web
