#include "base/log/log_sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/log/log_setup.h"
#include "base/log/logging.h"
#include "base/testing/test_environment.h"

namespace nodepool::log {

namespace {

namespace fs = std::filesystem;
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

class LogSetupTest : public ::testing::Test {
 protected:
  LogSetupTest() {
    setup_.loggers[""] = {Level::kInfo, {"main"}, true};
    Handler& handler = setup_.handlers["main"];
    handler.kind = Handler::Kind::kFile;
    handler.file.path = File("main.log");
    handler.format = *LineFormat::Parse("%(levelname)s %(name)s %(message)s", "", false);
  }
  ~LogSetupTest() override {
    log::Setup normal;
    normal.handlers["stderr"];
    normal.loggers[""] = {Level::kInfo, {"stderr"}, true};
    Apply(normal);
  }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }
  std::string Text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(File(name)).rdbuf();
    return text.str();
  }

  testing::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  log::Setup setup_;
};

TEST_F(LogSetupTest, LevelsAndHandlersFollowTheNames) {
  setup_.handlers["other"] = setup_.handlers["main"];
  setup_.handlers["other"].file.path = File("other.log");
  setup_.handlers["other"].level = Level::kError;
  setup_.loggers["setup.a"] = {Level::kDebug, {"other"}, true};
  setup_.loggers["setup.a.b"] = {std::nullopt, {"other"}, false};
  Logger a("setup.a"), below("setup.a.b.c"), beside("setup.ab");
  Apply(setup_);
  a.Debug("one");
  a.Error("two");
  below.Error("three");
  beside.Debug("four");
  beside.Info("five");
  EXPECT_EQ(Text("main.log"), "DEBUG setup.a one\nERROR setup.a two\nINFO setup.ab five\n");
  EXPECT_EQ(Text("other.log"), "ERROR setup.a two\nERROR setup.a.b.c three\n");
}

TEST_F(LogSetupTest, AFileThatCannotBeOpenedChangesNothing) {
  Apply(setup_);
  setup_.handlers["main"].file.path = File("main.log/x");
  EXPECT_THROW(Apply(setup_), Error);
  Logger("setup").Info("still here");
  EXPECT_EQ(Text("main.log"), "INFO setup still here\n");
}

TEST_F(LogSetupTest, FilesAreReopened) {
  Apply(setup_);
  Logger logger("setup");
  logger.Info("one");
  fs::rename(File("main.log"), File("moved.log"));
  logger.Info("two");
  ReopenFiles();
  logger.Info("three");
  EXPECT_EQ(Text("moved.log"), "INFO setup one\nINFO setup two\n");
  EXPECT_EQ(Text("main.log"), "INFO setup three\n");
}

TEST_F(LogSetupTest, AWatchedFileIsReopenedByItself) {  // operations.md 8.1
  setup_.handlers["main"].file.is_watched = true;
  Apply(setup_);
  Logger logger("setup");
  logger.Info("one");
  fs::rename(File("main.log"), File("moved.log"));
  logger.Info("two");
  EXPECT_EQ(Text("moved.log"), "INFO setup one\n");
  EXPECT_EQ(Text("main.log"), "INFO setup two\n");
}

TEST_F(LogSetupTest, WhileAFileCannotBeOpenedNothingBreaks) {
  setup_.handlers["main"].file.is_watched = true;
  fs::create_directory(File("sub"));
  setup_.handlers["main"].file.path = File("sub/main.log");
  Apply(setup_);
  Logger logger("setup");
  fs::remove_all(File("sub"));
  std::ofstream(File("sub")) << "in the way";
  for (int i = 0; i < 3; ++i) logger.Info("lost");
  fs::remove(File("sub"));
  logger.Info("found");
  EXPECT_EQ(Text("sub/main.log"), "INFO setup found\n");
}

TEST_F(LogSetupTest, AFileIsRotatedBySize) {
  setup_.handlers["main"].file.max_bytes = 30;
  setup_.handlers["main"].file.backups = 2;
  Apply(setup_);
  Logger logger("setup");
  for (int i = 1; i <= 7; ++i) logger.Info("{}", i);  // 13 bytes each
  EXPECT_EQ(Text("main.log"), "INFO setup 7\n");
  EXPECT_EQ(Text("main.log.1"), "INFO setup 5\nINFO setup 6\n");
  EXPECT_EQ(Text("main.log.2"), "INFO setup 3\nINFO setup 4\n");
  EXPECT_FALSE(fs::exists(File("main.log.3")));
}

TEST_F(LogSetupTest, AFileIsRotatedByTime) {
  LogFile& file = setup_.handlers["main"].file;
  file.turn = LogFile::Turn::kMidnight;
  file.suffix = "%Y-%m-%d";
  file.is_utc = true;
  file.backups = 1;
  std::ofstream(File("main.log")) << "of yesterday\n";
  std::ofstream(File("main.log.2001-01-01")) << "of long ago\n";
  std::ofstream(File("main.log.notes")) << "of another program\n";
  auto two_days_ago = std::chrono::file_clock::now() - std::chrono::hours(48);
  fs::last_write_time(File("main.log"), two_days_ago);
  Apply(setup_);
  Logger("setup").Info("of today");
  EXPECT_EQ(Text("main.log"), "INFO setup of today\n");
  std::time_t then = std::time(nullptr) - 48 * 3600;
  char day[32];
  std::strftime(day, sizeof(day), "main.log.%Y-%m-%d", std::gmtime(&then));
  EXPECT_EQ(Text(day), "of yesterday\n");
  EXPECT_FALSE(fs::exists(File("main.log.2001-01-01"))) << "one former file stays";
  EXPECT_TRUE(fs::exists(File("main.log.notes")));
}

TEST_F(LogSetupTest, SyslogGetsDatagrams) {
  int receiver = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  ASSERT_EQ(::bind(receiver, reinterpret_cast<sockaddr*>(&place), size), 0);
  ::getsockname(receiver, reinterpret_cast<sockaddr*>(&place), &size);
  Handler& handler = setup_.handlers["main"];
  handler.kind = Handler::Kind::kSyslog;
  handler.syslog = {"127.0.0.1", ntohs(place.sin_port), 3, true};
  Apply(setup_);
  Logger("setup").Warning("text");
  char text[100];
  ssize_t received = ::recv(receiver, text, sizeof(text), 0);
  ::close(receiver);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(received)),
            std::string("<28>WARNING setup text\0", 23));
}

TEST_F(LogSetupTest, AMissingSyslogIsHarmless) {
  Handler& syslog = setup_.handlers["syslog"] = setup_.handlers["main"];
  setup_.loggers[""].handlers = {"syslog", "main"};
  syslog.kind = Handler::Kind::kSyslog;
  syslog.syslog = {File("no-socket"), 0, 1, true};
  Apply(setup_);
  Logger("setup").Warning("one");
  syslog.syslog.address = std::string(500, 'x');
  Apply(setup_);
  Logger("setup").Warning("two");
  EXPECT_EQ(Text("main.log"), "WARNING setup one\nWARNING setup two\n");
}

}  // namespace

}  // namespace nodepool::log
