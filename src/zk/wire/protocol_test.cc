#include "zk/wire/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "zk/znode.h"

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

namespace nodepool::zk::protocol {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(auto write) {
  std::string bytes;
  JuteWriter out(bytes);
  write(out);
  return bytes;
}

TEST(ProtocolTest, ChrootIsPutInFront) {
  auto path = [](std::string_view chroot, std::string_view path) {
    std::string bytes = Bytes([&](JuteWriter& out) { WritePath(out, {chroot, path}); });
    return bytes.substr(4);
  };
  EXPECT_EQ(path("", "/"), "/");
  EXPECT_EQ(path("", "/a"), "/a");
  EXPECT_EQ(path("/np", "/a"), "/np/a");
  EXPECT_EQ(path("/np", "/"), "/np");
}

TEST(ProtocolTest, SequentialCreateKeepsItsSlashBelowTheChroot) {
  auto create = [](CreateMode mode) {
    return Bytes([&](JuteWriter& out) { WriteCreate(out, {"/np", "/"}, "", mode); });
  };
  EXPECT_THAT(create(CreateMode::kPersistentSequential), HasSubstr("/np/"));
  EXPECT_THAT(create(CreateMode::kPersistent), ::testing::Not(HasSubstr("/np/")));
}

TEST(ProtocolTest, SetWatchesIsSplitAndComplete) {
  WatchPaths watches;
  for (int i = 0; i < 1000; ++i) watches.data.push_back("/data/" + std::to_string(i));
  watches.recursive = {"/", "/r"};
  auto bodies = SetWatchesBodies(watches, "/np", 77, 2000);
  EXPECT_GT(bodies.size(), 5u);
  std::vector<std::string> data, recursive;
  for (const std::string& body : bodies) {
    EXPECT_LT(body.size(), 2100u);
    JuteReader in(body);
    EXPECT_EQ(in.Long(), 77);
    for (int list = 0; list < 5; ++list) {
      for (std::size_t count = in.VectorSize(4); count > 0; --count) {
        std::string path(in.String());
        if (list == 0) data.push_back(path);
        if (list == 4) recursive.push_back(path);
      }
    }
    EXPECT_EQ(in.remaining(), 0u);
  }
  EXPECT_EQ(data.size(), 1000u);
  EXPECT_EQ(data.back(), "/np/data/999");
  EXPECT_THAT(recursive, ElementsAre("/np", "/np/r"));
  EXPECT_TRUE(SetWatchesBodies({}, "", 1, 2000).empty());
}

TEST(ProtocolTest, ConnectResponse) {
  auto response = [](std::int32_t version, std::size_t password, bool has_read_only) {
    return Bytes([&](JuteWriter& out) {
      out.Int(version);
      out.Int(10'000);
      out.Long(0x42);
      out.Bytes(std::string(password, 'p'));
      if (has_read_only) out.Bool(true);
    });
  };
  std::string bytes = response(0, 16, true);
  JuteReader in(bytes);
  ConnectResponse read = ReadConnectResponse(in);
  EXPECT_EQ(read.timeout_ms, 10'000);
  EXPECT_EQ(read.session_id, 0x42);
  EXPECT_TRUE(read.read_only);
  bytes = response(0, 16, false);
  in = JuteReader(bytes);
  EXPECT_FALSE(ReadConnectResponse(in).read_only) << "old servers do not send it";
  bytes = response(3, 16, true);
  in = JuteReader(bytes);
  EXPECT_THROW(ReadConnectResponse(in), Error);
  bytes = response(0, 17, true);
  in = JuteReader(bytes);
  EXPECT_THROW(ReadConnectResponse(in), Error);
}

std::string MultiAnswer(const std::vector<std::int32_t>& errors, bool is_ended = true) {
  return Bytes([&](JuteWriter& out) {
    for (std::int32_t error : errors) {
      out.Int(-1);
      out.Bool(false);
      out.Int(error);
      out.Int(error);
    }
    out.Int(-1);
    out.Bool(is_ended);
    out.Int(-1);
  });
}

TEST(ProtocolTest, RefusedTransactionNamesTheOperationAtFault) {
  std::string bytes = MultiAnswer({0, -103, -2});
  JuteReader in(bytes);
  MultiResult result = ReadMulti(in, 3);
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.code(), Code::kBadVersion);
}

TEST(ProtocolTest, TransactionOfAnotherSizeIsMalformed) {
  for (std::size_t count : {0u, 1u, 2u, 4u}) {
    std::string bytes = MultiAnswer({0, -103, -2});
    JuteReader in(bytes);
    EXPECT_THROW(ReadMulti(in, count), Error) << count;
  }
  std::string bytes = MultiAnswer({0}, false);
  JuteReader in(bytes);
  EXPECT_THROW(ReadMulti(in, 1), Error);
}

TEST(ProtocolTest, AnswersToOtherReadsAreMalformed) {
  const std::vector<ReadOp> ops{{ReadOp::Kind::kChildren, "/a"}};
  auto part = [](JuteWriter& out, std::int32_t kind, bool is_end) {
    out.Int(kind);
    out.Bool(is_end);
    out.Int(0);
  };
  auto names = [&](std::int32_t kind) {
    return Bytes([&](JuteWriter& out) {
      part(out, kind, false);
      out.Int(1);
      out.String("b");
    });
  };
  std::string end = Bytes([&](JuteWriter& out) { part(out, -1, true); });
  auto read = [&](const std::string& bytes) {
    JuteReader in(bytes);
    return ReadReads(in, ops);
  };
  EXPECT_THAT(read(names(8) + end).at(0).names, ElementsAre("b"));
  EXPECT_THROW(read(names(4) + end), Error);
  EXPECT_THROW(read(end), Error);
  EXPECT_THROW(read(names(8) + names(8) + end), Error);
  EXPECT_THROW(read(names(8)), Error);
}

TEST(ProtocolTest, EventsOfUnknownKindsAreNone) {
  for (std::int32_t type : {-1, 0, 5, 1000}) {
    std::string bytes = Bytes([&](JuteWriter& out) {
      out.Int(type);
      out.Int(3);
      out.String("/a");
    });
    JuteReader in(bytes);
    EXPECT_EQ(ReadEvent(in).type, EventType::kNone) << type;
  }
}

}  // namespace

}  // namespace nodepool::zk::protocol

namespace nodepool::zk {

namespace {

TEST(PathTest, AcceptsWhatAServerAccepts) {
  for (const char* path : {"/", "/a", "/nodepool/nodes/0000000000", "/a/..b", "/a/b.", "/a b", "/\xC3\xA4",
                           "/\xE2\x82\xAC", "/\xEF\xBB\xBF"}) {
    EXPECT_TRUE(IsValidPath(path)) << path;
  }
}

TEST(PathTest, RefusesWhatAServerRefuses) {
  for (const char* path : {"", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a/./b", "/a\n", "/\x7F",
                           "/\xC2\x85",          // control character U+0085
                           "/\xEE\x80\x80",      // private use U+E000
                           "/\xEF\xBF\xBD",      // U+FFFD
                           "/\xF0\x9F\x98\x80",  // beyond U+FFFF
                           "/\xFF"}) {
    EXPECT_FALSE(IsValidPath(path)) << path;
  }
  EXPECT_FALSE(IsValidPath(std::string_view("/a\0b", 4)));
}

TEST(WirePathsTest, Paths) {
  for (const char* good : {"/", "/a", "/a/b", "/.a", "/a..", "/...", "/a b", "/\u00fc"}) {
    EXPECT_NO_THROW(CheckPath(good)) << good;
  }
  for (const char* bad :
       {"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/./b", "/a\n", "/\x7f", "/\xff"}) {
    EXPECT_THROW(CheckPath(bad), Error) << bad;
  }
  EXPECT_THROW(CheckPath(std::string_view("/a\0b", 4)), Error);
  EXPECT_NO_THROW(CheckPath("/a/", true)) << "a sequential create";
  EXPECT_THROW(CheckPath("/a//", true), Error);
}

TEST(WirePathsTest, PartsOfATransaction) {
  EXPECT_NO_THROW(CheckPaths({CreateOp{"/a/", "", CreateMode::kEphemeralSequential}, CheckOp{"/"}}));
  EXPECT_THROW(CheckPaths({CreateOp{"/a/", "", CreateMode::kPersistent}}), Error);
  EXPECT_THROW(CheckPaths({DeleteOp{"/a"}, SetOp{"b", ""}}), Error);
  EXPECT_THROW(CheckPaths({CreateOp{"/a", "", CreateMode::kPersistentTtl}}), Error);
}

TEST(WirePathsTest, Chroot) {
  EXPECT_EQ(NormalizedChroot(""), "");
  EXPECT_EQ(NormalizedChroot("/"), "");
  EXPECT_EQ(NormalizedChroot("/np/"), "/np");
  EXPECT_THROW(NormalizedChroot("np"), Error);
  EXPECT_EQ(WithoutChroot("/np/a", "/np"), "/a");
  EXPECT_EQ(WithoutChroot("/np", "/np"), "/");
  EXPECT_EQ(WithoutChroot("/npx/a", "/np"), std::nullopt);
  EXPECT_EQ(WithoutChroot("/a", "/np"), std::nullopt);
  EXPECT_EQ(WithoutChroot("/a", ""), "/a");
}

}  // namespace

}  // namespace nodepool::zk
