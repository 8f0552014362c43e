#include "zk/wire/jute.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace nodepool::zk {
namespace {

TEST(JuteTest, WritesBigEndian) {
  std::string bytes;
  JuteWriter out(bytes);
  out.Bool(true);
  out.Int(0x01020304);
  out.Long(-2);
  out.String("/a", "b");
  EXPECT_EQ(bytes, std::string("\1\1\2\3\4\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\3/ab", 20));
  out.PatchInt(1, -1);
  EXPECT_EQ(bytes.substr(0, 6), "\1\xff\xff\xff\xff\xff");
}

TEST(JuteTest, ReadsWhatIsWritten) {
  std::string bytes;
  JuteWriter out(bytes);
  out.Bool(false);
  out.Int(std::numeric_limits<std::int32_t>::min());
  out.Long(std::numeric_limits<std::int64_t>::max());
  out.Bytes(std::string("\0x", 2));
  out.Int(-1);
  JuteReader in(bytes);
  EXPECT_FALSE(in.Bool());
  EXPECT_EQ(in.Int(), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(in.Long(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(in.Bytes(), std::string_view("\0x", 2));
  EXPECT_EQ(in.Bytes(), "") << "a missing buffer is an empty one";
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(JuteTest, ShortInputIsAnErrorAtEveryLength) {
  std::string bytes;
  JuteWriter out(bytes);
  out.Long(1);
  out.String("/path", "");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    JuteReader in(std::string_view(bytes).substr(0, length));
    EXPECT_THROW((in.Long(), in.String()), Error) << length;
  }
}

TEST(JuteTest, LengthsBeyondTheInputAreRefused) {
  for (std::int32_t length : {5, -2, std::numeric_limits<std::int32_t>::max()}) {
    std::string bytes;
    JuteWriter(bytes).Int(length);
    bytes += "abcd";
    EXPECT_THROW(JuteReader(bytes).Bytes(), Error) << length;
    EXPECT_THROW(JuteReader(bytes).VectorSize(1), Error) << length;
  }
  std::string bytes;
  JuteWriter(bytes).Int(2);
  bytes += "1234567";
  EXPECT_THROW(JuteReader(bytes).VectorSize(4), Error) << "two elements of four bytes do not fit in seven";
}

}  // namespace
}  // namespace nodepool::zk
