#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace nodepool::web {

// The text of one gzip file.
inline std::string Gunzipped(std::string compressed) {
  z_stream zlib{};
  EXPECT_EQ(inflateInit2(&zlib, 15 + 16), Z_OK);
  zlib.next_in = reinterpret_cast<Bytef*>(compressed.data());
  zlib.avail_in = static_cast<uInt>(compressed.size());
  std::string text;
  int result = Z_OK;
  while (result == Z_OK) {
    std::string part(64 * 1024, '\0');
    zlib.next_out = reinterpret_cast<Bytef*>(part.data());
    zlib.avail_out = static_cast<uInt>(part.size());
    result = inflate(&zlib, Z_NO_FLUSH);
    text += part.substr(0, part.size() - zlib.avail_out);
  }
  EXPECT_EQ(result, Z_STREAM_END);
  EXPECT_EQ(zlib.avail_in, 0u) << "there is more behind it";
  inflateEnd(&zlib);
  return text;
}

}  // namespace nodepool::web
