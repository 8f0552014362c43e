#include "builder/files/image_check.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"

namespace nodepool::builder {

namespace {

using namespace std::string_view_literals;

constexpr std::streamoff kVhdFooter = 512;
constexpr std::string_view kQcow2Magic = "QFI\xfb"sv;
constexpr std::string_view kVhdMagic = "conectix"sv;

// The `count` bytes at `offset`, or fewer at the file's end.
std::string BytesAt(std::ifstream& file, std::streamoff offset, std::size_t count) {
  std::string bytes(count, 0);
  file.seekg(offset);
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

ImageCheck CheckImageFile(const std::string& path, const std::string& format) {
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(errno)));
  if (size == 0) return {.fault = fmt::format("its {} file is empty", format)};
  bool is_doubtful = false;
  if (format == "qcow2") is_doubtful = BytesAt(file, 0, kQcow2Magic.size()) != kQcow2Magic;
  if (format == "vhd")
    is_doubtful = size < kVhdFooter || BytesAt(file, size - kVhdFooter, kVhdMagic.size()) != kVhdMagic;
  if (!is_doubtful) return {};
  return {.doubt = fmt::format("{} does not look like a {} file", path, format)};
}

}  // namespace nodepool::builder
