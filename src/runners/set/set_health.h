#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace nodepool::runners {

// What is wrong with a set, and why; and what to do about it. Sentences without a full stop; empty: nothing.
struct SetFault {
  std::string text;
  std::string remedy;
};

// Why a set starts no runners for a while, and what of it is wrong (runners.md 8, 9). All texts are for
// people, without secrets.
class SetHealth {
 public:
  // A node could not be had for a run.
  void NoNode(std::string reason, WallTime now);
  // A node was there, and its runner did not start. After three in a row starts are held back.
  void DidNotStart(std::string reason, WallTime now);
  // A runner was started.
  void Started();
  // The service refuses the runner's version: one try each ten minutes.
  void Deprecated(std::string version, WallTime now);
  // The service cannot be used; an empty one: it can.
  void ServiceFault(SetFault fault) { service_fault_ = std::move(fault); }

  // Whether runs may begin; else until when they are held back.
  std::optional<WallTime> HeldBackUntil(WallTime now) const;
  // Whether requests failed a short while ago.
  bool LacksNodes(WallTime now) const;
  // The most urgent fault.
  SetFault Fault(WallTime now) const;

 private:
  SetFault service_fault_;
  SetFault start_fault_;
  SetFault node_fault_;
  std::optional<WallTime> node_failed_;
  std::optional<WallTime> held_until_;
  int failures_in_a_row_ = 0;
};

}  // namespace nodepool::runners
