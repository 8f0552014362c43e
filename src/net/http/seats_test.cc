#include "net/http/seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>

namespace nodepool::net {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SeatsTest : public ::testing::Test {
 protected:
  // A seat that notes its name when it is sent away.
  Seat& Enter(Seats& seats, std::string name, std::string network, std::string proven_as = "") {
    now_ += milliseconds(1);
    Seats::Ptr seat = seats.Enter(std::move(network), std::move(proven_as), now_);
    if (seat) seat->leave = [this, name] { gone_.push_back(name); };
    is_refused_ = seat == nullptr;
    static Seat none;
    return seat ? *taken_.emplace_back(std::move(seat)) : none;
  }
  void Advance(Duration time) { now_ += time; }

  SteadyTime now_{seconds(1)};
  bool is_refused_ = false;
  std::vector<std::string> gone_;
  Seats seats_{{.strangers = 3, .proven = 2, .held_bytes = 100}};
  std::deque<Seats::Ptr> taken_;
};

// HTTP-1
TEST_F(SeatsTest, WhoDoesNothingForLongestGivesWay) {
  Enter(seats_, "a", "a");
  Seat& b = Enter(seats_, "b", "b");
  Enter(seats_, "c", "c");
  Seat& d = Enter(seats_, "d", "d");
  EXPECT_THAT(gone_, ElementsAre("a"));
  b.since = now_ + milliseconds(1);
  Enter(seats_, "e", "e");
  EXPECT_THAT(gone_, ElementsAre("a", "c")) << "b has taken bytes since";
  b.awaits_peer = d.awaits_peer = false;
  Enter(seats_, "f", "f");
  EXPECT_THAT(gone_, ElementsAre("a", "c", "e")) << "the others are being answered";
  EXPECT_EQ(seats_.strangers(), 3u);
}

// HTTP-1
TEST_F(SeatsTest, ANetworkWithManySeatsGivesWay) {
  Seat& old = Enter(seats_, "old", "other");
  Enter(seats_, "one", "flood").awaits_peer = false;
  Enter(seats_, "two", "flood").awaits_peer = false;
  Enter(seats_, "three", "flood");
  EXPECT_THAT(gone_, ElementsAre("one")) << "a network cannot have all";
  EXPECT_EQ(old.network, "other");
  EXPECT_NE(old.party, nullptr);
}

// HTTP-1
TEST_F(SeatsTest, AFairShareIsNoReasonToGiveWay) {
  Seats seats({.strangers = 4, .proven = 1, .fair_share = 2});
  for (const char* name : {"a", "b"}) Enter(seats, name, name);
  for (const char* name : {"client 1", "client 2"}) Enter(seats, name, "client");
  for (const char* name : {"c", "d"}) Enter(seats, name, name);
  EXPECT_THAT(gone_, ElementsAre("a", "b")) << "a network for each, and nothing done for longer";
  taken_.clear();
}

// HTTP-2
TEST_F(SeatsTest, WhoHasProvedWhoHeIsKeepsHisSeatBesideStrangers) {
  Seat& client = Enter(seats_, "client", "flood");
  seats_.Prove(client, "ci");
  for (int i = 0; i < 100; ++i) Enter(seats_, "stranger", "flood");
  EXPECT_NE(client.party, nullptr);
  EXPECT_EQ(seats_.strangers(), 3u);
  EXPECT_EQ(seats_.proven(), 1u);
  seats_.Prove(client, "");
  EXPECT_EQ(seats_.proven(), 0u);
  Enter(seats_, "one more", "flood");
  EXPECT_EQ(client.party, nullptr) << "its token was withdrawn";
}

// HTTP-2
TEST_F(SeatsTest, ATokenCannotHaveAllSeats) {
  Seat& first = Enter(seats_, "first", "a");
  Seat& second = Enter(seats_, "second", "a");
  for (Seat* seat : {&first, &second}) seats_.Prove(*seat, "greedy");
  Seat& other = Enter(seats_, "other", "a");
  seats_.Prove(other, "other");
  EXPECT_EQ(first.proven_as, "") << "a stranger again, and not sent away";
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_EQ(second.proven_as, "greedy");
  EXPECT_EQ(other.proven_as, "other");
}

TEST_F(SeatsTest, ASeatIsFreeAgainWhenItIsLeft) {
  for (const char* name : {"a", "b", "c"}) Enter(seats_, name, name);
  taken_.pop_front();
  Enter(seats_, "d", "d");
  EXPECT_THAT(gone_, IsEmpty());
}

// HTTP-1: of those that hold memory for answers that they do not take
TEST_F(SeatsTest, AnAnswerThatNobodyTakesGivesWay) {
  Seat& deaf = Enter(seats_, "deaf", "a");
  Seat& stranger = Enter(seats_, "stranger", "b");
  Seat& client = Enter(seats_, "client", "c", "ci");
  EXPECT_TRUE(seats_.Hold(deaf, 60, now_));
  EXPECT_FALSE(seats_.Hold(stranger, 60, now_)) << "it may be only slow";
  EXPECT_FALSE(seats_.Hold(stranger, 101, now_ + seconds(9)));
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_TRUE(seats_.Hold(stranger, 60, now_ + seconds(1)));
  EXPECT_THAT(gone_, ElementsAre("deaf"));
  stranger.since = now_;
  EXPECT_TRUE(seats_.Hold(client, 60, now_));
  EXPECT_THAT(gone_, ElementsAre("deaf", "stranger")) << "no stranger has what is for others";
  seats_.Release(client);
  EXPECT_TRUE(seats_.Hold(client, 100, now_));
}

// HTTP-3
TEST_F(SeatsTest, WhereDoingNothingIsOrdinaryOnlyTheLargestGivesWay) {
  Seats streams({.strangers = 3, .proven = 1, .replaces_own = false});
  for (const char* name : {"a1", "a2", "a3"}) Enter(streams, name, "a");
  Enter(streams, "a4", "a");
  EXPECT_TRUE(is_refused_);
  Enter(streams, "b1", "b");
  EXPECT_THAT(gone_, ElementsAre("a1"));
  Enter(streams, "b2", "b");
  EXPECT_TRUE(is_refused_) << "the other would have less then";
  Enter(streams, "c", "b", "ci");
  EXPECT_FALSE(is_refused_);
  taken_.clear();
}

// ACT-15
TEST(PeerNetworkTest, OfIpv6TheFirstHalfCounts) {
  EXPECT_EQ(NetworkOf("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(NetworkOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(NetworkOf("2001:db8:1:2::9"), NetworkOf("2001:db8:1:2:ffff::"));
  EXPECT_NE(NetworkOf("2001:db8:1:3::9"), NetworkOf("2001:db8:1:2::9"));
  EXPECT_EQ(NetworkOf("what"), "what");
}

}  // namespace

}  // namespace nodepool::net
