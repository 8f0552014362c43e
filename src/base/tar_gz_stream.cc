#include "base/tar_gz_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace nodepool {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostOfName = 99;
constexpr std::size_t kReadAtOnce = 1 << 20;
// What one call reads at most: zeros become almost nothing.
constexpr std::size_t kReadPerCall = 128 << 20;
constexpr int kGzipWindow = 15 + 16;
constexpr std::uint64_t kMostInOctal = std::uint64_t{1} << 33;

// A number of the header: octal digits, or bytes with the highest bit set before them (GNU).
std::string TarNumber(std::uint64_t number, std::size_t width) {
  if (number < kMostInOctal) return fmt::format("{:0{}o}", number, width - 1) + '\0';
  std::string bytes(width, '\0');
  for (std::size_t i = width; i-- > 1 && number > 0; number >>= 8)
    bytes[i] = static_cast<char>(number & 0xff);
  bytes[0] = '\x80';
  return bytes;
}

}  // namespace

std::string TarHeader(const std::string& name, std::uint64_t size) {
  std::string header(kBlock, '\0');
  auto put = [&header](std::size_t place, const std::string& text) {
    header.replace(place, text.size(), text);
  };
  put(0, name.substr(0, kMostOfName));
  put(100, TarNumber(0644, 8));
  for (std::size_t owner : {108, 116}) put(owner, TarNumber(0, 8));
  put(124, TarNumber(size, 12));
  put(136, TarNumber(0, 12));
  put(148, std::string(8, ' '));
  put(156, "0");
  put(257, "ustar  ");
  std::uint64_t sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0' + ' ');
  return header;
}

TarGzStream::TarGzStream(std::string name, std::uint64_t size, Reader read)
    : name_(std::move(name)), size_(size), read_(std::move(read)), zlib_(std::make_unique<z_stream>()) {
  int made = deflateInit2(zlib_.get(), Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  if (made != Z_OK) throw Error(Verdict::kFail, "an archive cannot be compressed");
}

TarGzStream::~TarGzStream() { deflateEnd(zlib_.get()); }

// Members are whole blocks, and two empty ones are the end.
std::string TarGzStream::NextPlain() {
  if (!std::exchange(has_header_, true)) return TarHeader(name_, size_);
  if (place_ < size_) {
    std::uint64_t length = std::min<std::uint64_t>(kReadAtOnce, size_ - place_);
    std::string bytes = read_(place_, length);
    bytes.resize(length, '\0');
    place_ += length;
    return bytes;
  }
  has_trailer_ = true;
  std::uint64_t padding = (kBlock - size_ % kBlock) % kBlock;
  return std::string(padding + 2 * kBlock, '\0');
}

std::string TarGzStream::Read(std::size_t size) {
  std::string bytes(size, '\0');
  zlib_->next_out = reinterpret_cast<Bytef*>(bytes.data());
  zlib_->avail_out = static_cast<uInt>(size);
  for (std::size_t read = 0; zlib_->avail_out > 0 && read < kReadPerCall && !is_at_end_;) {
    if (zlib_->avail_in == 0 && !has_trailer_) {
      plain_ = NextPlain();
      read += plain_.size();
      zlib_->next_in = reinterpret_cast<Bytef*>(plain_.data());
      zlib_->avail_in = static_cast<uInt>(plain_.size());
    }
    int done = deflate(zlib_.get(), has_trailer_ ? Z_FINISH : Z_NO_FLUSH);
    if (done == Z_STREAM_ERROR) throw Error(Verdict::kFail, "an archive cannot be compressed");
    is_at_end_ = done == Z_STREAM_END;
  }
  bytes.resize(size - zlib_->avail_out);
  return bytes;
}

}  // namespace nodepool
