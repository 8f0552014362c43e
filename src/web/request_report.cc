#include "web/request_report.h"

#include <cmath>

namespace nodepool::web {
namespace {

namespace json = boost::json;

template <class Id>
json::array Names(const std::vector<Id>& ids) {
  json::array names;
  for (const Id& id : ids) names.emplace_back(id.value);
  return names;
}

json::value Text(const std::optional<std::string>& text) { return text ? json::value(*text) : json::value(); }

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
      entry["labels"] = Names(reason.labels);
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
      {"labels", Names(record.node_types)},
      {"requestor", Text(record.requestor)},
      {"tenant", Text(record.tenant_name)},
      {"provider", record.provider.empty() ? json::value() : json::value(record.provider.value)},
      {"priority", record.relative_priority},
      {"event_id", Text(record.event_id)},
      {"nodes", Names(record.nodes)},
      {"declined_by", Names(record.declined_by)},
      {"accepted_by", nullptr},
      {"waits", ToJson(status.waits)}};
  if (status.accepted_by) {
    object["accepted_by"] = json::object{{"provider", status.accepted_by->provider.value},
                                         {"pool", status.accepted_by->pool.value}};
  }
  return object;
}

}  // namespace nodepool::web
