#include "base/log/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/log/logging.h"
#include "base/testing/temporary_folder.h"

namespace nodepool::log {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// journald's socket, and a logger that writes to it.
class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    address().copy(place.sun_path, sizeof(place.sun_path) - 1);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&place), sizeof(place)), 0);
    Handler& handler = setup_.handlers["main"];
    handler.kind = Handler::Kind::kJournal;
    handler.journal = {address(), "np"};
    handler.format = *LineFormat::Parse("%(message)s", "", false);
    setup_.loggers[""] = {Level::kInfo, {"main"}, true};
    Apply(setup_);
  }
  ~JournalTest() override {
    log::Setup normal;
    normal.handlers["stderr"];
    normal.loggers[""] = {Level::kInfo, {"stderr"}, true};
    Apply(normal);
    ::close(socket_);
  }
  std::string address() const { return (folder_ / "socket").string(); }

  // The next entry, including those that are in a file.
  std::string Receive() {
    std::string text(1 << 16, 0);
    iovec whole{text.data(), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &whole;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    ssize_t size = ::recvmsg(socket_, &header, MSG_DONTWAIT);
    if (size < 0) return "";
    text.resize(static_cast<std::size_t>(size));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    if (rights == nullptr) return text;
    int file = -1;
    std::memcpy(&file, CMSG_DATA(rights), sizeof(int));
    struct stat status {};
    ::fstat(file, &status);
    text.resize(static_cast<std::size_t>(status.st_size));
    size = ::pread(file, text.data(), text.size(), 0);
    EXPECT_EQ(size, status.st_size);
    EXPECT_LT(::ftruncate(file, 0), 0) << "it is sealed";
    ::close(file);
    return text;
  }

  testing::TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
  int socket_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  log::Setup setup_;
};

TEST_F(JournalTest, TheIdsOfARecordAreInFields) {
  Logger logger = Logger("nodepool.x").About({"e1", "200-0000000001", "0000000007"});
  logger.Warning("text");
  EXPECT_EQ(Receive(),
            "PRIORITY=4\n"
            "MESSAGE=[e: e1] [node_request: 200-0000000001] [node: 0000000007] text\n"
            "SYSLOG_IDENTIFIER=np\nLOGGER=nodepool.x\nNODEPOOL_EVENT=e1\n"
            "NODEPOOL_REQUEST=200-0000000001\nNODEPOOL_NODE=0000000007\n");
  Logger("nodepool.x").Error("two\nlines");
  EXPECT_THAT(Receive(),
              HasSubstr(std::string("PRIORITY=3\nMESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\nSYSLOG", 43)));
}

TEST_F(JournalTest, AFieldCannotBeInjected) {
  Logger("nodepool.x").About({"e1\nPRIORITY=0", "", ""}).Info("a\nPRIORITY=1");
  std::string entry = Receive();
  EXPECT_THAT(
      entry, HasSubstr(std::string("MESSAGE\n\x22\0\0\0\0\0\0\0[e: e1\\x0aPRIORITY=0] a\nPRIORITY=1\n", 51)));
  EXPECT_THAT(entry, HasSubstr("NODEPOOL_EVENT=e1\\x0aPRIORITY=0\n"));
}

TEST_F(JournalTest, LongEntriesAreSentAsAFile) {
  std::string text;
  while (text.size() < 20 << 20) text += std::string(16'000, 'x') + "\n";
  Logger("nodepool.x").Info("{}", text);
  std::string entry = Receive();
  EXPECT_GT(entry.size(), text.size());
  EXPECT_THAT(entry.substr(0, 40), HasSubstr("xxxx"));
  Logger("nodepool.x").Info("short");
  EXPECT_THAT(Receive(), HasSubstr("MESSAGE=short\n"));
}

TEST_F(JournalTest, AReceiverThatDoesNotReadDelaysNothing) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i) Logger("nodepool.x").Info("{}", i);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  while (!Receive().empty()) {
  }
  Logger("nodepool.x").Info("again");
  EXPECT_THAT(Receive(), HasSubstr("MESSAGE=again\n"));
}

TEST_F(JournalTest, AMissingReceiverIsHarmless) {
  std::filesystem::remove(address());
  Logger("nodepool.x").Info("lost");
  EXPECT_EQ(Receive(), "");
}

TEST_F(JournalTest, TheStreamIsKnownByItsInode) {
  struct stat status {};
  ASSERT_EQ(::fstat(socket_, &status), 0);
  std::string stream = fmt::format("{}:{}", status.st_dev, status.st_ino);
  EXPECT_TRUE(IsJournalStream(stream.c_str(), socket_));
  EXPECT_FALSE(IsJournalStream((stream + "1").c_str(), socket_));
  EXPECT_FALSE(IsJournalStream(nullptr, socket_));
  EXPECT_FALSE(IsJournalStream(stream.c_str(), -1));
}

}  // namespace
}  // namespace nodepool::log
