#include "listing/job_listing.h"

#include "model/cell.h"

namespace nodepool::listing {

std::int64_t NumberOf(const JobId& id) {
  std::int64_t number = 0;
  for (char digit : id.value) number = number * 10 + (digit - '0');
  return number;
}

std::vector<Column> JobColumns() {
  return {{.key = "id", .title = "ID", .fit = {Importance::kAlways}},
          {.key = "name", .title = "Name", .fit = kName},
          {.key = "hold_on_failure", .title = "Hold on Failure"}};
}

Listing ListJobs(const std::map<JobId, store::StoredJobRule>& rules) {
  Listing listing{JobColumns(), {}};
  for (const auto& [id, rule] : rules) {
    std::optional<std::int64_t> limit = rule.record.hold_on_failure;
    listing.rows.push_back({NumberOf(id), Cell::OfText(rule.record.name), limit ? Cell(*limit) : Cell()});
  }
  return listing;
}

}  // namespace nodepool::listing
