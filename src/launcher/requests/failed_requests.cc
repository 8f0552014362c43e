#include "launcher/requests/failed_requests.h"

#include "model/decline_reasons.h"

namespace nodepool::launcher {
namespace {

constexpr Duration kKept = std::chrono::hours(1);
constexpr std::size_t kMaxKept = 1000;

}  // namespace

FailedRequests::FailedRequests(const Loop& loop, store::RequestCache& requests) : loop_(loop) {
  auto keep_failed = [this](const RequestId&, const store::StoredRequest* before,
                            const store::StoredRequest* after) {
    if (after != nullptr || before->record.state != RequestState::kFailed) return;
    if (before->record.requestor != kMinReadyRequestor) Keep(*before);
  };
  subscription_ = requests.OnChange(keep_failed);
}

const std::map<RequestId, store::StoredRequest>& FailedRequests::Deleted() {
  DropOld();
  return requests_;
}

void FailedRequests::Keep(const store::StoredRequest& request) {
  store::StoredRequest kept = request;
  kept.record.requestor_data = {};
  kept.record.foreign = {};
  for (const std::string& reason : DeclineReasons(request.record)) AddDeclineReason(kept.record, reason);
  if (!requests_.emplace(request.id, std::move(kept)).second) return;
  deletions_.push_back({loop_.SteadyNow(), request.id});
  DropOld();
}

void FailedRequests::DropOld() {
  SteadyTime oldest = loop_.SteadyNow() - kKept;
  while (!deletions_.empty() && (deletions_.front().at <= oldest || deletions_.size() > kMaxKept)) {
    requests_.erase(deletions_.front().id);
    deletions_.pop_front();
  }
}

}  // namespace nodepool::launcher
