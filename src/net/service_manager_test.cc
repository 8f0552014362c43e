#include "net/service_manager.h"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>

#include "base/testing/test_environment.h"

namespace nodepool::net {
namespace {

// The socket of the service manager.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& name) {  // with a zero byte first: abstract
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    name.copy(place.sun_path, sizeof(place.sun_path));
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&place), size), 0);
  }
  ~NotifySocket() { ::close(socket_); }
  std::string Receive() const {
    char text[1000];
    ssize_t size = ::recv(socket_, text, sizeof(text), MSG_DONTWAIT);
    return {text, size < 0 ? 0 : static_cast<std::size_t>(size)};
  }

 private:
  int socket_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
};

TEST(ServiceManagerTest, IsNotifiedAtAPathAndAtAnAbstractName) {
  testing::TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  NotifySocket at_path(folder + "/socket");
  NotifySocket abstract('\0' + folder);
  ServiceManager((folder + "/socket").c_str()).Notify("READY=1\n" + StatusLine("two\nlines"));
  EXPECT_EQ(at_path.Receive(), "READY=1\nSTATUS=two lines");
  ServiceManager(("@" + folder).c_str()).Notify("STOPPING=1");
  EXPECT_EQ(abstract.Receive(), "STOPPING=1");
}

std::ptrdiff_t OpenFiles() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

TEST(ServiceManagerTest, NotifyingNoneDoesNothing) {
  std::ptrdiff_t before = OpenFiles();
  std::string too_long = "/" + std::string(200, 'x');
  for (const char* address : std::initializer_list<const char*>{nullptr, "", "relative", too_long.c_str(),
                                                                "/none/socket", "vsock:2:1234"}) {
    EXPECT_NO_THROW(ServiceManager(address).Notify("READY=1"));
  }
  EXPECT_EQ(OpenFiles(), before) << "nothing is left open";
}

TEST(ServiceManagerTest, TheWatchdogIsForOneProcess) {
  std::string own = std::to_string(::getpid());
  EXPECT_EQ(WatchdogInterval("3000000", own.c_str()), std::chrono::seconds(3));
  EXPECT_EQ(WatchdogInterval("3000000", nullptr), std::chrono::seconds(3));
  EXPECT_EQ(WatchdogInterval("3000000", "1"), std::nullopt);
  for (const char* text : {"", "0", "-1", "1s", "99999999999999999999"}) {
    EXPECT_EQ(WatchdogInterval(text, nullptr), std::nullopt) << text;
  }
  EXPECT_EQ(WatchdogInterval(nullptr, nullptr), std::nullopt);
}

}  // namespace
}  // namespace nodepool::net
