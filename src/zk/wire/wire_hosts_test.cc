#include "zk/wire/wire_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "zk/wire/wire_for_test.h"

namespace nodepool::zk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WireHostsTest : public ::testing::Test, public RealTime {
 protected:
  std::vector<std::string> Resolve(std::vector<HostPort> servers, Random& dice) {
    std::vector<std::string> names;
    problems.clear();
    auto endpoints = Await(ResolveServers(loop, dice, std::move(servers), problems));
    for (const auto& endpoint : endpoints) {
      names.push_back(fmt::format("{} {}", endpoint.address().to_string(), endpoint.port()));
    }
    return names;
  }

  std::vector<std::string> problems;
};

TEST_F(WireHostsTest, LiteralsWithAndWithoutBracketsOnce) {
  SeededRandom dice(1);
  EXPECT_THAT(Resolve({{"::1", 2181}, {"[::1]", 2181}}, dice), ElementsAre("::1 2181"));
  EXPECT_THAT(Resolve({{"10.0.0.1", 2281}}, dice), ElementsAre("10.0.0.1 2281"));
  EXPECT_TRUE(problems.empty());
}

TEST_F(WireHostsTest, UnknownNamesAreToldAndLeftOut) {
  SeededRandom dice(1);
  EXPECT_THAT(Resolve({{"no-such-host.invalid", 1}, {"127.0.0.1", 2}}, dice), ElementsAre("127.0.0.1 2"));
  EXPECT_THAT(problems, ElementsAre(HasSubstr("no-such-host.invalid: ")));
}

TEST_F(WireHostsTest, EveryServerMayComeFirst) {
  std::set<std::string> first;
  SeededRandom dice(1);
  for (int i = 0; i < 50; ++i) {
    first.insert(Resolve({{"127.0.0.1", 1}, {"127.0.0.1", 2}, {"127.0.0.1", 3}}, dice).front());
  }
  EXPECT_EQ(first.size(), 3u);
}

}  // namespace
}  // namespace nodepool::zk
