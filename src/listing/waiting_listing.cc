#include "listing/waiting_listing.h"

#include <algorithm>
#include <set>

namespace nodepool::listing {

WallTime WaitsSince(const NodeRequest& request) { return request.created_time.value_or(request.state_time); }

std::vector<const store::StoredRequest*> WaitingRequests(const store::RequestCache& requests) {
  std::vector<const store::StoredRequest*> waiting;
  for (RequestState state : {RequestState::kRequested, RequestState::kPending}) {
    for (const RequestId& id : requests.InState(state)) waiting.push_back(requests.Find(id));
  }
  std::ranges::sort(waiting, [](const store::StoredRequest* a, const store::StoredRequest* b) {
    WallTime of_a = WaitsSince(a->record), of_b = WaitsSince(b->record);
    return of_a != of_b ? of_a < of_b : a->id < b->id;
  });
  return waiting;
}

std::vector<Column> WaitingColumns() {
  return {{.key = "id", .title = "Request", .fit = {Importance::kAlways}},
          {.key = "age", .title = "Waits", .kind = Kind::kTime, .fit = {Importance::kHigh}},
          {.key = "state", .title = "State", .kind = Kind::kState, .words = RequestStateWords()},
          {.key = "node_types", .title = "Labels", .kind = Kind::kLabel, .fit = kName},
          {.key = "requestor", .title = "Requestor", .fit = {Importance::kLow, 9}},
          {.key = "why", .title = "Why", .fit = kSentence}};
}

Listing ListWaiting(const store::RequestCache& requests, const Reasons& why) {
  Listing listing{WaitingColumns(), {}};
  for (const store::StoredRequest* request : WaitingRequests(requests)) {
    const NodeRequest& record = request->record;
    auto reason = why.find(request->id);
    listing.rows.push_back({request->id.value, UnixTime(WaitsSince(record)), StateCell(record.state),
                            JsonNames(record.node_types), TextCell(record.requestor),
                            reason == why.end() ? Cell() : Cell(reason->second)});
  }
  return listing;
}

Listing ListWaitingByReason(const store::RequestCache& requests, const Reasons& why, std::size_t limit) {
  struct Group {
    const store::StoredRequest* first;
    std::size_t count = 0;
    std::set<LabelName> labels;
  };
  std::vector<Group> groups;
  std::map<std::string, std::size_t> group_of;  // by reason
  for (const store::StoredRequest* request : WaitingRequests(requests)) {
    auto reason = why.find(request->id);
    auto [place, is_new] = group_of.try_emplace(reason == why.end() ? "" : reason->second, groups.size());
    if (is_new) groups.push_back({request});
    Group& group = groups[place->second];
    ++group.count;
    group.labels.insert(request->record.node_types.begin(), request->record.node_types.end());
  }
  Listing listing{
      {{.key = "count", .title = "Requests", .fit = {Importance::kAlways}},
       {.key = "age", .title = "Waits", .kind = Kind::kTime, .fit = {Importance::kHigh}},
       {.key = "id", .title = "For Longest", .fit = {Importance::kHigh}},
       {.key = "labels", .title = "Labels", .kind = Kind::kLabel, .fit = {Importance::kMedium, 12}},
       {.key = "why", .title = "Why", .fit = {Importance::kAlways, 40}}},
      {}};
  for (const Group& group : groups) {
    if (listing.rows.size() == limit) break;
    auto reason = why.find(group.first->id);
    std::vector<LabelName> labels(group.labels.begin(), group.labels.end());
    listing.rows.push_back({Cell(group.count), UnixTime(WaitsSince(group.first->record)),
                            Cell(group.first->id.value), JsonNames(labels),
                            reason == why.end() ? Cell() : Cell(reason->second)});
  }
  return listing;
}

}  // namespace nodepool::listing
