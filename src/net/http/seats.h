#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"

namespace nodepool::net {

// The place of one connection at a server, and what decides whether it may keep it.
struct Seat {
  struct Party {
    std::size_t seats = 0;
  };

  std::string network;                    // of the peer (seats.h)
  std::string proven_as;                  // who the peer has proved to be; empty: a stranger
  SteadyTime since{};                     // when the peer last came, sent a request or took bytes
  bool awaits_peer = true;                // the next step is the peer's
  std::size_t held_bytes{};               // of a large answer that the peer has not taken
  std::function<void()> leave = nullptr;  // ends the connection; set by its owner
  Party* party = nullptr;                 // of Seats
};

// Who has the places for connections, and who loses his when all are taken (http.md 2.1). Strangers are told
// apart by network, the others by the name that they have proved; places of the others are beside those of
// strangers, and no stranger takes one away. The party with the most seats gives way, where it has more than
// a fair share; in it those whom we wait for, of these the one that has done nothing for the longest time.
class Seats {
 public:
  using Ptr = std::shared_ptr<Seat>;

  struct Limits {
    std::size_t strangers = 0;
    std::size_t proven = 0;
    std::size_t held_bytes = 0;  // of all
    std::size_t fair_share = 0;  // parties with so many seats or fewer count as equally large
    // Whether a newcomer may take the place of one of its own party; else it is refused where no other party
    // has more.
    bool replaces_own = true;
  };

  explicit Seats(Limits limits) : limits_(limits) {}
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  // A seat until the pointer is gone; null: there is none, which happens only where newcomers may not replace
  // their own. It outlives no Seats.
  Ptr Enter(std::string network, std::string proven_as, SteadyTime now);

  // The peer has proved who it is; an empty name: not any more. Where too many have, another one counts as a
  // stranger again.
  void Prove(Seat& seat, const std::string& name);

  // Whether so many bytes may be kept until the peer has taken them. They are kept from now on until
  // Release(). Strangers that have taken nothing for a second lose their places for it; for one who is no
  // stranger also those that have taken something since.
  bool Hold(Seat& seat, std::size_t bytes, SteadyTime now);
  void Release(Seat& seat);

  // Everybody leaves.
  void Clear();

  std::size_t strangers() const { return strangers_; }
  std::size_t proven() const { return seats_.size() - strangers_; }

 private:
  void Count(Seat& seat);
  void Uncount(Seat& seat);
  void Remove(Seat& seat);
  void SendAway(Seat& seat);
  // Who leaves first of those that may.
  template <class May>
  Seat* First(May may) const;
  bool GoesBefore(const Seat& one, const Seat& other) const;

  const Limits limits_;
  std::list<Seat*> seats_;
  std::map<std::string, Seat::Party> networks_;
  std::map<std::string, Seat::Party> names_;
  std::size_t strangers_ = 0;
  std::size_t held_bytes_ = 0;
};

// What a client can choose its addresses from: of an IPv6 address the first 64 bits, else all of it. Limits
// for a client count by it.
std::string NetworkOf(const std::string& address);

}  // namespace nodepool::net
