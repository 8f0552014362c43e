#include "base/tar_gz_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace nodepool {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostOfName = 99;
constexpr std::size_t kReadAtOnce = 1 << 20;
// What one call reads at most: zeros become almost nothing.
constexpr std::size_t kReadPerCall = 128 << 20;
// What zlib may have held back of what came before, at most.
constexpr std::size_t kHeldBack = 64 << 10;
constexpr int kRawWindow = -15;  // deflate without a header
// RFC 1952: deflate, no name, no time, the fastest compression, on Unix.
constexpr std::string_view kGzipHeader("\x1f\x8b\x08\0\0\0\0\0\x04\x03", 10);
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

void Begin(z_stream& zlib) {
  int made = deflateInit2(&zlib, Z_BEST_SPEED, Z_DEFLATED, kRawWindow, 8, Z_DEFAULT_STRATEGY);
  if (made != Z_OK) throw Error(Verdict::kFail, "an archive cannot be compressed");
}

// Appends what `plain` becomes.
void Compress(z_stream& zlib, const std::string& plain, int flush, std::string& compressed) {
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  zlib.avail_in = static_cast<uInt>(plain.size());
  const std::size_t most = deflateBound(&zlib, plain.size()) + kHeldBack;
  do {
    const std::size_t before = compressed.size();
    compressed.resize(before + most);
    zlib.next_out = reinterpret_cast<Bytef*>(compressed.data() + before);
    zlib.avail_out = static_cast<uInt>(most);
    if (deflate(&zlib, flush) == Z_STREAM_ERROR)
      throw Error(Verdict::kFail, "an archive cannot be compressed");
    compressed.erase(compressed.size() - zlib.avail_out);
  } while (zlib.avail_out == 0);
}

std::uint32_t ChecksumOf(const std::string& plain) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(plain.data()), static_cast<uInt>(plain.size())));
}

// A piece of zeros as it is between two others.
struct Zeros {
  Zeros() {
    z_stream zlib{};
    Begin(zlib);
    Compress(zlib, plain, Z_FULL_FLUSH, compressed);
    deflateEnd(&zlib);
  }
  std::string plain = std::string(kReadAtOnce, '\0');
  std::uint32_t checksum = ChecksumOf(plain);
  std::string compressed;
};

const Zeros& AllZeros() {
  static const Zeros zeros;
  return zeros;
}

// The least byte first.
std::string GzipNumber(std::uint32_t number) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> 8 * i);
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
    : name_(std::move(name)),
      size_(size),
      read_(std::move(read)),
      compressed_(kGzipHeader),
      zlib_(std::make_unique<z_stream>()) {
  Begin(*zlib_);
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

void TarGzStream::Advance() {
  const std::string plain = NextPlain();
  const bool is_zeros = plain == AllZeros().plain;
  const std::uint32_t checksum = is_zeros ? AllZeros().checksum : ChecksumOf(plain);
  checksum_ =
      static_cast<std::uint32_t>(crc32_combine(checksum_, checksum, static_cast<z_off_t>(plain.size())));
  plain_size_ += plain.size();
  if (!is_zeros) {
    Compress(*zlib_, plain, has_trailer_ ? Z_FINISH : Z_NO_FLUSH, compressed_);
  } else {
    if (!is_flushed_) Compress(*zlib_, "", Z_FULL_FLUSH, compressed_);
    compressed_ += AllZeros().compressed;
  }
  is_flushed_ = is_zeros;
  if (has_trailer_)
    compressed_ += GzipNumber(checksum_) + GzipNumber(static_cast<std::uint32_t>(plain_size_));
}

std::string TarGzStream::Read(std::size_t size) {
  const std::uint64_t begin = plain_size_;
  while (compressed_.size() < size && !has_trailer_ && plain_size_ - begin < kReadPerCall) Advance();
  std::string bytes = compressed_.substr(0, size);
  compressed_.erase(0, size);
  is_at_end_ = has_trailer_ && compressed_.empty();
  return bytes;
}

}  // namespace nodepool
