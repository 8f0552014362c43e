#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "web/router.h"

namespace nodepool::web {

// The page for a browser: GET / is its HTML, GET /assets/<name> what it needs. All its URLs are relative, so
// that it works behind any path prefix of a proxy (http.md PAGE-7).
std::vector<Endpoint> PageEndpoints();

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
