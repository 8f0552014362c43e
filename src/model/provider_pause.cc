#include "model/provider_pause.h"

#include "base/text.h"
#include "model/record_fields.h"

namespace nodepool {
namespace {

constexpr std::size_t kShownReason = 300;

}  // namespace

template <class Fields, RecordOf<ProviderPause> T>
void EachField(Fields& fields, T& pause) {
  fields("reason", pause.reason);
  fields("drain", pause.is_drained);
  fields("paused_by", pause.paused_by);
  fields("paused_time", pause.paused_time);
}

Expected<ProviderPause> ParseProviderPause(std::string_view json) {
  return ReadRecord(json, ProviderPause());
}

std::string ToJson(const ProviderPause& pause) { return WriteRecord(pause); }

std::string WhoAndWhy(const ProviderPause& pause) {
  std::string text = Excerpt(pause.paused_by.empty() ? "an unknown operator" : pause.paused_by);
  if (pause.reason && !pause.reason->empty()) text += ": " + Excerpt(*pause.reason, kShownReason);
  return text;
}

}  // namespace nodepool
