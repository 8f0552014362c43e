#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/ssh/host_key_scan.h"

namespace nodepool::net {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Number(std::size_t number) {
  std::string bytes;
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string NameList(const std::string& names) { return Number(names.size()) + names; }

std::string Packet(const std::string& payload, std::size_t padding = 6) {
  return Number(1 + payload.size() + padding) + static_cast<char>(padding) + payload +
         std::string(padding, '\0');
}

std::string KexInit(const std::string& host_key_algorithms) {
  return "\x14" + std::string(16, 'c') + NameList("curve25519-sha256") + NameList(host_key_algorithms) +
         NameList("aes256-ctr");
}

constexpr const char* kIdentification = "SSH-2.0-x\r\n";

std::optional<std::vector<std::string>> OfferedIn(const std::string& bytes) {
  ServerHello hello;
  Expected<std::string> passed = hello.Add(bytes);
  EXPECT_EQ(passed, bytes);
  return hello.host_key_algorithms();
}

bool IsRefused(const std::string& bytes) {
  ServerHello hello;
  return !hello.Add(bytes);
}

TEST(ServerHello, ListsTheHostKeyAlgorithmsThatAServerOffers) {
  auto offered = OfferedIn(kIdentification + Packet(KexInit("ssh-ed25519,rsa-sha2-512")) + "more");
  ASSERT_TRUE(offered);
  EXPECT_THAT(*offered, ElementsAre("ssh-ed25519", "rsa-sha2-512"));
}

TEST(ServerHello, DoesNotDependOnHowTheBytesArrive) {
  const std::string conversation = kIdentification + Packet(KexInit("ssh-ed25519")) + "more";
  for (std::size_t size : {1, 2, 7, 50}) {
    std::string bytes = "a notice\r\nanother one\n" + conversation;
    ServerHello hello;
    std::string passed;
    for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(std::min(size, rest.size()))) {
      passed += hello.Add(rest.substr(0, size)).value();
    }
    EXPECT_EQ(passed, conversation);
    ASSERT_TRUE(hello.host_key_algorithms());
    EXPECT_THAT(*hello.host_key_algorithms(), ElementsAre("ssh-ed25519"));
  }
}

TEST(ServerHello, IsThatOfAnSshServer) {
  EXPECT_FALSE(IsRefused("SSH-1.99-both\n"));
  EXPECT_TRUE(IsRefused("SSH-1.5-old\n"));
  EXPECT_FALSE(IsRefused("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(IsRefused("HTTP/1.1 400 Bad Request\r\n\r\nSSH-1.0-old\r\n"));
  std::string lines;
  for (int i = 0; i < 49; ++i) lines += "notice\n";
  EXPECT_FALSE(IsRefused(lines + kIdentification));
  EXPECT_TRUE(IsRefused(lines + "notice\n" + kIdentification));
  EXPECT_FALSE(IsRefused(std::string(ServerHello::kMostBytesOfLine - 1, 'x')));
  EXPECT_TRUE(IsRefused(std::string(ServerHello::kMostBytesOfLine, 'x')));
  EXPECT_TRUE(IsRefused(std::string(ServerHello::kMostBytesOfLine, 'x') + "\n"));
}

TEST(ServerHello, PassesOnNothingBeforeTheIdentification) {
  ServerHello hello;
  EXPECT_EQ(hello.Add("notice\nSSH-2.0"), "");
  EXPECT_EQ(hello.Add("-x\r\nmore"), "SSH-2.0-x\r\nmore");
  EXPECT_EQ(hello.Add("and more"), "and more");
}

TEST(ServerHello, KnowsNothingOfPacketsThatAreNotWhole) {
  const std::string whole = KexInit("ssh-ed25519");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto offered = OfferedIn(kIdentification + Packet(whole.substr(0, size)));
    bool has_list = size >= whole.find("ssh-ed25519") + std::string("ssh-ed25519").size();
    EXPECT_EQ(offered.has_value(), has_list) << size;
  }
  EXPECT_FALSE(OfferedIn(kIdentification));
  EXPECT_FALSE(OfferedIn(kIdentification + Packet(whole).substr(0, 40)));
}

TEST(ServerHello, KnowsNothingOfPacketsWithWrongLengths) {
  for (const std::string& packet : {
           Number(0),                                                         // empty
           Number(1) + "\xff",                                                // only padding
           Number(2) + std::string("\xff\x14"),                               // more than there is
           Number(35001) + std::string(35001, '\x14'),                        // too long
           Number(0xffffffff) + "x",                                          //
           Packet("\x14" + std::string(16, 'c') + Number(0xffffffff) + "x"),  // first list
           Packet("\x14" + std::string(16, 'c') + NameList("k") + Number(0xfffffff0) + "x"),  // second list
           Packet("\x15" + KexInit("ssh-ed25519").substr(1)),  // another packet
       }) {
    EXPECT_FALSE(OfferedIn(kIdentification + packet));
  }
}

TEST(ServerHello, AServerMayOfferNothingThatIsKnown) {
  auto offered = OfferedIn(kIdentification + Packet(KexInit("")));
  ASSERT_TRUE(offered);
  for (const std::string& name : *offered) EXPECT_THAT(name, IsEmpty());
}

}  // namespace

}  // namespace nodepool::net
