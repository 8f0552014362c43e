#include "zk/wire/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

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
  EXPECT_FALSE(ReadConnectResponse(in).read_only) << "old servers do not tell";
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

TEST(ProtocolTest, RefusedTransactionNamesTheOneAtFault) {
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
