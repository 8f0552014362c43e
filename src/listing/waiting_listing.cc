#include "listing/waiting_listing.h"

#include <algorithm>

namespace nodepool::listing {

WallTime WaitsSince(const NodeRequest& request) { return request.created_time.value_or(request.state_time); }

std::vector<const store::StoredRequest*> WaitingRequests(const store::RequestCache& requests) {
  std::vector<const store::StoredRequest*> waiting;
  for (RequestState state : {RequestState::kRequested, RequestState::kPending}) {
    for (const RequestId& id : requests.InState(state)) waiting.push_back(requests.Find(id));
  }
  std::ranges::sort(waiting, {}, [](const store::StoredRequest* request) {
    return std::pair(WaitsSince(request->record), request->id);
  });
  return waiting;
}

std::vector<Column> WaitingColumns() {
  return {{.key = "id", .title = "Request", .fit = {Importance::kAlways}},
          {.key = "age", .title = "Waits", .kind = Kind::kTime, .fit = {Importance::kHigh}, .since = "since"},
          {.key = "state", .title = "State", .kind = Kind::kState, .words = RequestStateWords()},
          {.key = "node_types", .title = "Labels", .kind = Kind::kLabel, .fit = kName},
          {.key = "requestor", .title = "Requestor", .fit = {Importance::kLow, 9}},
          {.key = "why", .title = "Why", .fit = kSentence}};
}

Listing ListWaiting(const store::RequestCache& requests, const Reasons& why, std::size_t limit) {
  Listing listing{WaitingColumns(), {}};
  for (const store::StoredRequest* request : WaitingRequests(requests)) {
    if (listing.rows.size() == limit) break;
    const NodeRequest& record = request->record;
    auto reason = why.find(request->id);
    listing.rows.push_back({request->id.value, UnixTime(WaitsSince(record)), StateCell(record.state),
                            JsonNames(record.node_types), TextCell(record.requestor),
                            reason == why.end() ? Cell() : Cell(reason->second)});
  }
  return listing;
}

}  // namespace nodepool::listing
