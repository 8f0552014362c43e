#include "web/lists/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace nodepool::web {
namespace {

constexpr int kGzip = 15 + 16;  // the largest window, and the format
constexpr int kUsualMemory = 8;
constexpr std::size_t kOutAtATime = 16 * 1024;
// Some 0.1 ms, also for what is hard to compress.
constexpr std::size_t kAtATime = 8 * 1024;

}  // namespace

struct GzipWriter::Stream {
  Stream() {
    // Other levels take several times as long for a third less.
    int made = deflateInit2(&zlib, Z_BEST_SPEED, Z_DEFLATED, kGzip, kUsualMemory, Z_DEFAULT_STRATEGY);
    if (made != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { deflateEnd(&zlib); }

  z_stream zlib{};
};

GzipWriter::GzipWriter() : stream_(std::make_unique<Stream>()) {}
GzipWriter::~GzipWriter() = default;

void GzipWriter::Write(std::string& out, std::string_view text) { Run(out, text, Z_NO_FLUSH); }

void GzipWriter::Finish(std::string& out) { Run(out, {}, Z_FINISH); }

void GzipWriter::Run(std::string& out, std::string_view text, int flush) {
  z_stream& zlib = stream_->zlib;
  // zlib reads only.
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  do {
    std::size_t begin = out.size();
    out.resize(begin + kOutAtATime);
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + begin);
    zlib.avail_out = static_cast<uInt>(kOutAtATime);
    deflate(&zlib, flush);  // fails only for a stream that is not as zlib left it
    out.resize(out.size() - zlib.avail_out);
  } while (zlib.avail_out == 0);
}

Task<std::string> Gzipped(const std::string& text, Pace& pace) {
  GzipWriter writer;
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view step = rest.substr(0, kAtATime);
    rest.remove_prefix(step.size());
    writer.Write(out, step);
    if (pace.is_due(step.size())) co_await pace.Pause();
  }
  writer.Finish(out);
  out.shrink_to_fit();
  co_return out;
}

}  // namespace nodepool::web
