#include "driver/cloud/api/credential_source.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud::api {
namespace {

using namespace std::chrono_literals;

struct Key {
  int number = 0;
  WallTime expires = WallTime::max();
};

class CredentialSourceTest : public ::testing::Test {
 protected:
  Task<Key> Fetch() {
    ++fetches;
    co_await time.loop().SleepFor(1s);
    if (status != 0) throw ApiError(Verdict::kInvalid, "who are you?", status);
    if (is_broken) throw Error(Verdict::kRetry, "no answer");
    co_return Key{fetches, time.loop().Now() + life};
  }
  std::shared_ptr<const Key> Get() { return time.Run(source.Get()); }

  testing::VirtualTime time;
  int fetches = 0;
  int status = 0;
  bool is_broken = false;
  Duration life = 1h;
  CredentialSource<Key> source{time.loop(), [this] { return Fetch(); }};
};

TEST_F(CredentialSourceTest, ManyWaitForOneRequest) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto get = [](CredentialSource<Key>& source, int& got) -> Task<> {
    std::shared_ptr<const Key> key = co_await source.Get();
    got += key->number;
  };
  int got = 0;
  for (int i = 0; i < 5; ++i) tasks.Spawn("get", get(source, got));
  time.Run(tasks.Join());
  EXPECT_EQ(got, 5);
  EXPECT_EQ(fetches, 1);
}

TEST_F(CredentialSourceTest, ItIsRenewedBeforeItExpires) {
  Get();
  time.Advance(57min);
  EXPECT_EQ(Get()->number, 1);
  time.Advance(2min);
  EXPECT_EQ(Get()->number, 2);
}

TEST_F(CredentialSourceTest, AShortOneIsUsedForHalfOfItsLife) {
  life = 20s;
  EXPECT_EQ(Get()->number, 1);
  time.Advance(9s);
  EXPECT_EQ(Get()->number, 1);
  time.Advance(1s);
  EXPECT_EQ(Get()->number, 2);
}

// The issuer does not renew its credentials, or this host's clock is ahead.
TEST_F(CredentialSourceTest, OneThatHasExpiredAlreadyIsUsedForSomeMinutes) {
  life = -1h;
  for (int i = 0; i < 3; ++i) {
    std::shared_ptr<const Key> key = Get();
    EXPECT_EQ(key->number, 1);
    source.Discard(key);
  }
  EXPECT_EQ(fetches, 1) << "not before each call, although services refuse it";
  life = 1h;
  time.Advance(5min);
  EXPECT_EQ(Get()->number, 2);
}

TEST_F(CredentialSourceTest, OneThatCannotBeReplacedIsUsedUntilItExpires) {
  Get();
  is_broken = true;
  time.Advance(59min);
  EXPECT_EQ(Get()->number, 1);
  EXPECT_EQ(fetches, 2);
  EXPECT_EQ(Get()->number, 1);
  EXPECT_EQ(fetches, 2) << "not tried again at once";
  time.Advance(1min);
  EXPECT_THROW(Get(), Error);
  is_broken = false;
  EXPECT_EQ(Get()->number, 4);
}

TEST_F(CredentialSourceTest, ARefusedOneIsNotUsedWhileItsSuccessorIsFetched) {
  std::shared_ptr<const Key> first = Get();
  is_broken = true;
  time.Advance(59min);
  Get();
  source.Discard(first);
  EXPECT_THROW(Get(), Error);
}

TEST_F(CredentialSourceTest, ADiscardedOneIsFetchedAgainOnce) {
  std::shared_ptr<const Key> first = Get();
  source.Discard(first);
  EXPECT_EQ(Get()->number, 2);
  source.Discard(first);
  EXPECT_EQ(Get()->number, 2) << "discarding an old one does not concern the new one";
}

TEST_F(CredentialSourceTest, ARefusalIsRememberedForAWhile) {
  status = 401;
  for (int i = 0; i < 10; ++i) EXPECT_THROW(Get(), Error);
  EXPECT_EQ(fetches, 1);
  time.Advance(16s);
  status = 0;
  EXPECT_EQ(Get()->number, 2);
}

TEST_F(CredentialSourceTest, ABrokenConnectionIsNotARefusal) {
  is_broken = true;
  EXPECT_THROW(Get(), Error);
  is_broken = false;
  EXPECT_EQ(Get()->number, 2);
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
