#include "net/http/seats.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <tuple>
#include <utility>

namespace nodepool::net {

namespace {

constexpr Duration kDeaf = std::chrono::seconds(1);

bool IsStranger(const Seat& seat) { return seat.proven_as.empty(); }

}  // namespace

// A network with two seats must not lose one to a stranger who has a network for each of his.
bool Seats::GoesBefore(const Seat& one, const Seat& other) const {
  auto rank = [this](const Seat& seat) {
    return std::tuple(std::max(seat.party->seats, limits_.fair_share), seat.awaits_peer);
  };
  return rank(one) != rank(other) ? rank(one) > rank(other) : one.since < other.since;
}

template <class May>
Seat* Seats::First(May may) const {
  Seat* first = nullptr;
  for (Seat* seat : seats_) {
    if (!may(*seat)) continue;
    if (first == nullptr || GoesBefore(*seat, *first)) first = seat;
  }
  return first;
}

void Seats::Count(Seat& seat) {
  bool is_stranger = IsStranger(seat);
  auto& parties = is_stranger ? networks_ : names_;
  seat.party = &parties[is_stranger ? seat.network : seat.proven_as];
  ++seat.party->seats;
  if (is_stranger) ++strangers_;
}

void Seats::Uncount(Seat& seat) {
  bool is_stranger = IsStranger(seat);
  if (is_stranger) --strangers_;
  if (--seat.party->seats > 0) return;
  auto& parties = is_stranger ? networks_ : names_;
  parties.erase(is_stranger ? seat.network : seat.proven_as);
}

void Seats::Remove(Seat& seat) {
  if (seat.party == nullptr) return;  // it was sent away
  Release(seat);
  Uncount(seat);
  seat.party = nullptr;
  seats_.remove(&seat);
}

void Seats::SendAway(Seat& seat) {
  Remove(seat);
  auto leave = std::move(seat.leave);
  if (leave) leave();
}

Seats::Ptr Seats::Enter(std::string network, std::string proven_as, SteadyTime now) {
  if (proven() >= limits_.proven) proven_as.clear();
  while (proven_as.empty() && strangers_ >= limits_.strangers) {
    Seat* first = First(IsStranger);
    auto own = networks_.find(network);
    std::size_t own_seats = own == networks_.end() ? 0 : own->second.seats;
    if (!limits_.replaces_own && first->party->seats <= own_seats + 1) return nullptr;
    SendAway(*first);
  }
  auto seat = Ptr(new Seat{std::move(network), std::move(proven_as), now}, [this](Seat* left) {
    Remove(*left);
    delete left;
  });
  seats_.push_back(seat.get());
  Count(*seat);
  return seat;
}

void Seats::Prove(Seat& seat, const std::string& name) {
  if (seat.party == nullptr || seat.proven_as == name) return;
  auto become = [this](Seat& changed, const std::string& other) {
    Uncount(changed);
    changed.proven_as = other;
    Count(changed);
  };
  become(seat, name);
  if (proven() <= limits_.proven) return;
  Seat* first = First([](const Seat& each) { return !IsStranger(each); });
  become(*first, "");
}

bool Seats::Hold(Seat& seat, std::size_t bytes, SteadyTime now) {
  if (bytes > limits_.held_bytes || seat.party == nullptr) return false;
  SteadyTime latest = IsStranger(seat) ? now - kDeaf : now;
  while (held_bytes_ + bytes > limits_.held_bytes) {
    Seat* first = First(
        [&](const Seat& each) { return IsStranger(each) && each.held_bytes > 0 && each.since <= latest; });
    if (first == nullptr) return false;
    SendAway(*first);
  }
  seat.held_bytes += bytes;
  held_bytes_ += bytes;
  return true;
}

void Seats::Release(Seat& seat) { held_bytes_ -= std::exchange(seat.held_bytes, 0); }

void Seats::Clear() {
  while (!seats_.empty()) SendAway(*seats_.front());
}

std::string NetworkOf(const std::string& address) {
  constexpr std::size_t kNetworkBytes = 8;
  boost::system::error_code failed;
  boost::asio::ip::address parsed = boost::asio::ip::make_address(address, failed);
  if (failed || !parsed.is_v6()) return address;
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace nodepool::net
