#include "base/encoding.h"

#include <gtest/gtest.h>

namespace nodepool {
namespace {

TEST(EncodingTest, Base64OfRfc4648) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

TEST(EncodingTest, Base64SurvivesARoundTrip) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
    EXPECT_EQ(FromBase64(Base64(bytes)), bytes);
  }
}

TEST(EncodingTest, WhatIsNotBase64IsRefused) {
  for (const char* text : {"Zg", "Zg=", "====", "Z===", "Zm9v!mFy", "Zm9v\nYm"}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
}

TEST(EncodingTest, HexHasTwoDigitsPerByte) { EXPECT_EQ(Hex(std::string_view("\x00\x0f\xff", 3)), "000fff"); }

}  // namespace
}  // namespace nodepool
