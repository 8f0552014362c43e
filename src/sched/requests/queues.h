#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"
#include "sched/requests/order.h"
#include "sched/requests/question.h"

namespace nodepool::sched {

// Everything about a request that a pool's decision depends on. Requests of one shape get the same
// decision at the same moment, so only the first of them is evaluated; this makes the work per
// event independent of the number of waiting requests.
struct Shape {
  std::vector<LabelName> node_types;
  bool reuse = true;
  bool is_min_ready = false;
  std::optional<std::string> tenant_name;
  ProviderName provider;
  std::vector<LauncherId> declined_by;
  auto operator<=>(const Shape&) const = default;
};

Shape ShapeOf(const NodeRequest& request);

// The record belongs to the request cache.
struct Waiting {
  RequestId id;
  const NodeRequest* request = nullptr;
};
// The waiting requests of one shape in service order.
using Queue = std::map<ServiceOrder, Waiting>;

// The waiting requests of one shape, and what an Assigner knows about all of them.
struct Line {
  std::uint64_t number = 0;  // of all lines that ever were
  const Shape* shape = nullptr;
  Queue requests;                // never empty
  bool is_waiting = false;       // all pools have been asked, and let the requests wait: `answers` count
  bool is_stale = true;          // all pools have to be asked
  std::set<std::size_t> stale;   // otherwise those at these positions have to
  std::optional<Offers> offers;  // absent: not found yet
  Answers answers;               // of all pools, in their order
  std::size_t faults = 0;        // answers that name a fault of a driver or provider
};

// All requests in state `requested`, by shape. O(log n) per change.
class Queues {
 public:
  using Shapes = std::map<Shape, Line>;
  using Lines = std::map<std::uint64_t, Line*>;  // by their numbers

  Queues() = default;
  Queues(const Queues&) = delete;  // lines are known by their addresses
  Queues(Queues&&) = default;
  Queues& operator=(Queues&&) = default;

  // Adds a request, or replaces its former version. Requests that are not waiting, or whose id has
  // no place in the order, are not stored. `request` stays valid until the next Put or Remove of
  // the same id.
  void Put(const RequestId& id, const NodeRequest& request);
  void Remove(const RequestId& id);

  const Shapes& shapes() const { return shapes_; }
  std::size_t size() const { return places_.size(); }
  // The answers of all pools about the requests of the shape, which wait; null: none waits, or none was
  // considered.
  const Answers* WaitingOf(const Shape& shape) const;
  // The shapes that began or ceased to wait, or wait for other reasons, since the last call.
  std::set<Shape> TakeChanges() { return std::exchange(changes_, {}); }
  // Whether a request waits because a driver cannot answer, or a provider cannot be used.
  bool IsProviderAtFault() const { return !at_fault_.empty(); }

  // For the Assigner: the lines about whose requests a pool has to be asked, by their first request.
  const std::map<ServiceOrder, Line*>& due() const { return due_; }
  void SetDue(Line& line) { due_.emplace(line.requests.begin()->first, &line); }
  // All pools let the requests wait, as is known of them.
  void Wait(Line& line);
  // They wait for other reasons than before.
  void NoteChange(const Line& line) { changes_.insert(*line.shape); }
  // Those whose first label is this one; empty: also those that ask for no label.
  const Lines& WithFirstLabel(const LabelName& label) const;
  const Lines& OfTenant(const std::string& tenant) const;
  void ForEach(auto visit) {
    for (auto& [shape, line] : shapes_) visit(line);
  }

 private:
  struct Place {
    Shapes::iterator line;
    ServiceOrder order;
  };
  Shapes::iterator Enter(Shape shape);
  void Leave(Shapes::iterator line);
  void Insert(Line& line, const ServiceOrder& order);
  void Take(const Place& place);

  Shapes shapes_;
  std::unordered_map<RequestId, Place> places_;
  std::map<ServiceOrder, Line*> due_;
  std::map<LabelName, Lines> by_first_label_;
  std::map<std::string, Lines> by_tenant_;
  Lines at_fault_;
  std::set<Shape> changes_;
  std::uint64_t last_number_ = 0;
};

// The labels for which a waiting request would take a free node.
std::set<LabelName> LabelsToReuse(const Queues& queues);

}  // namespace nodepool::sched
