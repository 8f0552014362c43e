#include "base/tar_gz_stream.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"

namespace nodepool {
namespace {

constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;

std::string ReadAll(TarGzStream& stream, std::size_t at_once) {
  std::string bytes;
  while (!stream.is_at_end()) bytes += stream.Read(at_once);
  return bytes;
}

std::string Unzipped(const std::string& bytes, std::size_t most) {
  z_stream zlib{};
  inflateInit2(&zlib, 15 + 16);
  std::string plain(most, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(plain.data());
  zlib.avail_out = static_cast<uInt>(most);
  EXPECT_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END);
  plain.resize(most - zlib.avail_out);
  inflateEnd(&zlib);
  return plain;
}

TEST(TarGzStream, OneFileAndZerosUpToItsSize) {
  const std::string content = std::string(3 << 20, 'x') + "end";
  auto read = [&](std::uint64_t place, std::size_t length) {
    return place < content.size() ? content.substr(place, length) : "";
  };
  const std::uint64_t size = (5 << 20) + 7;
  TarGzStream stream("disk.raw", size, read);
  std::string archive = Unzipped(ReadAll(stream, 1000), size + 4096);
  EXPECT_EQ(stream.place(), size);
  EXPECT_EQ(archive.size(), 512 + (5 << 20) + 512 + 1024u);
  EXPECT_EQ(archive.substr(0, 512), TarHeader("disk.raw", size));
  EXPECT_EQ(archive.substr(512, content.size()), content);
  EXPECT_EQ(archive.find_first_not_of('\0', 512 + content.size()), std::string::npos);
}

// Runs of zeros between other bytes, at places that are no multiple of anything.
TEST(TarGzStream, WhatIsCompressedOnceIsTheSame) {
  std::string content(20 << 20, '\0');
  for (std::size_t place :
       {std::size_t{0}, std::size_t{5} << 20, (std::size_t{11} << 20) - 3, content.size() - 1})
    content.replace(place, 1, "x");
  for (std::size_t i = 0; i < (2 << 20); ++i)
    content[(14 << 20) + i] = static_cast<char>(i * i * 2654435761u >> 24);
  auto read = [&](std::uint64_t place, std::size_t length) { return content.substr(place, length); };
  for (std::size_t at_once : {std::size_t{777}, std::size_t{1} << 22}) {
    TarGzStream stream("disk.raw", content.size(), read);
    std::string compressed = ReadAll(stream, at_once);
    std::string archive = Unzipped(compressed, content.size() + 4096);
    EXPECT_EQ(archive.size(), 512 + content.size() + 1024);
    EXPECT_TRUE(archive.substr(512, content.size()) == content);
  }
}

TEST(TarGzStream, OneCallReadsABoundedPart) {
  TarGzStream stream("zeros", kGibibyte, [](std::uint64_t, std::size_t) { return ""; });
  stream.Read(8 << 20);
  EXPECT_LT(stream.place(), kGibibyte / 4);
  EXPECT_FALSE(stream.is_at_end());
}

TEST(TarGzStream, WhatCannotBeReadIsAnError) {
  TarGzStream stream("file", 1, [](std::uint64_t, std::size_t) -> std::string {
    throw Error(Verdict::kFail, "no such file");
  });
  EXPECT_THROW(stream.Read(1000), Error);
}

TEST(TarHeader, NamesTheMemberAndItsSize) {
  std::string header = TarHeader("disk.raw", kGibibyte);
  EXPECT_EQ(header.size(), 512u);
  EXPECT_EQ(header.substr(0, 9), std::string("disk.raw\0", 9));
  EXPECT_EQ(header.substr(124, 12), std::string("10000000000\0", 12));
  EXPECT_EQ(TarHeader("large", 16 * kGibibyte).substr(124, 12),
            std::string("\x80\0\0\0\0\0\0\4\0\0\0\0", 12));
  EXPECT_EQ(TarHeader(std::string(200, 'x'), 1)[99], '\0');
}

}  // namespace
}  // namespace nodepool
