#include "web/request_report.h"

#include <cmath>

#include "model/json_cells.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

json::object Amounts(const Resources& resources) {
  json::object amounts;
  for (const auto& [resource, amount] : resources) {
    bool is_whole = std::abs(amount) < 1e15 && amount == std::floor(amount);
    amounts[resource] = is_whole ? json::value(static_cast<std::int64_t>(amount)) : json::value(amount);
  }
  return amounts;
}

}  // namespace

json::array ToJson(const std::vector<launcher::WaitReason>& reasons) {
  json::array list;
  for (const launcher::WaitReason& reason : reasons) {
    json::object entry{{"provider", reason.pool.provider.value},
                       {"pool", reason.pool.pool.value},
                       {"reason", reason.code},
                       {"text", reason.text}};
    if (!reason.labels.empty()) {
      entry["labels"] = JsonNames(reason.labels);
      entry["missing"] = json::object{{"pool", Amounts(reason.pool_shortage)},
                                      {"provider", Amounts(reason.provider_shortage)}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

json::object ToJson(const launcher::RequestStatus& status, WallTime now) {
  const NodeRequest& record = *status.record;
  WallTime made = record.created_time.value_or(record.state_time);
  json::object object{
      {"id", status.id.value},
      {"state", record.state ? json::value(ToString(*record.state)) : json::value()},
      {"age", std::chrono::duration_cast<std::chrono::seconds>(now - made).count()},
      {"labels", JsonNames(record.node_types)},
      {"requestor", JsonText(record.requestor)},
      {"tenant", JsonText(record.tenant_name)},
      {"provider", record.provider.empty() ? json::value() : json::value(record.provider.value)},
      {"priority", record.relative_priority},
      {"event_id", JsonText(record.event_id)},
      {"nodes", JsonNames(record.nodes)},
      {"declined_by", JsonNames(record.declined_by)},
      {"accepted_by", nullptr},
      {"waits", ToJson(status.waits)}};
  if (status.accepted_by) {
    object["accepted_by"] = json::object{{"provider", status.accepted_by->provider.value},
                                         {"pool", status.accepted_by->pool.value}};
  }
  return object;
}

}  // namespace nodepool::web
