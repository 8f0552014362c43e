#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "async/pace.h"

namespace nodepool::web {

// Compresses a text that comes in pieces, as gzip (RFC 1952). It keeps 270 KB. Not copied or moved.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Appends what can be sent so far, which may be nothing.
  void Write(std::string& out, std::string_view text);
  // Appends the rest. Nothing is written afterwards.
  void Finish(std::string& out);

 private:
  struct Stream;

  void Run(std::string& out, std::string_view text, int flush);

  std::unique_ptr<Stream> stream_;
};

// The text as gzip. Pauses whenever `pace` is due; the text stays as it is meanwhile.
Task<std::string> Gzipped(const std::string& text, Pace& pace);

}  // namespace nodepool::web
