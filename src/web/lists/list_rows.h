#pragma once

#include <functional>
#include <vector>

#include "async/pace.h"
#include "launcher/records.h"
#include "listing/listing.h"
#include "web/router.h"

namespace nodepool::web {

// A list ends with the answer, so what is larger than this is refused.
inline constexpr std::size_t kMaxListBytes = 32 << 20;

// Throws Error(kQuota) unless a list of so many bytes may be made.
void RequireFit(std::size_t bytes);

// Calls `see` with each row of a list as text, and pauses whenever `pace` is due. Throws Error(kRetry) if the
// records become incomplete during a pause.
using SeeRow = std::function<void(const listing::AgedText&)>;
using ForEachRow = std::function<Task<>(const launcher::Records&, const Request&, SeeRow, Pace&)>;

// A list of operations.md 6.
struct List {
  std::vector<listing::Column> columns;
  ForEachRow json;
  ForEachRow texts;  // of cells, each terminated by a 0
};

List NodeList();  // all nodes, or the one of the parameter node_id
List RequestList();
List UploadList();
List BuildList();
List ImageStatusList();
List LabelList();  // labels that any registered pool offers

}  // namespace nodepool::web
