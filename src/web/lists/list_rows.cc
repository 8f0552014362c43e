#include "web/lists/list_rows.h"

#include <memory>
#include <set>
#include <utility>

#include "listing/image_listing.h"
#include "listing/node_listing.h"
#include "listing/request_listing.h"
#include "web/lists/node_rows.h"

namespace nodepool::web {
namespace {

using launcher::Records;
using listing::AgedText;
using listing::Column;
using listing::Listing;
using listing::NodeColumns;

// Makes a row in a format.
using MakeRow = std::function<void(AgedText&, const std::vector<Cell>&)>;

MakeRow JsonOf(const std::vector<Column>& columns) {
  return [rows = listing::JsonRows(columns, JsonStyle::kPython)](
             AgedText& out, const std::vector<Cell>& row) { rows.Append(out, row); };
}

MakeRow TextsOf(const std::vector<Column>& columns) {
  return [columns](AgedText& out, const std::vector<Cell>& row) { AppendTexts(out, columns, row); };
}

List InBothFormats(const std::vector<Column>& columns, ForEachRow (*rows)(const MakeRow&)) {
  return {columns, rows(JsonOf(columns)), rows(TextsOf(columns))};
}

// --- Nodes: the rows are cached ---------------------------------------------

Task<> SeeNodes(std::shared_ptr<NodeRows> rows, Records records, SeeRow see, Pace& pace) {
  NodeRows::Limits limits{.bytes = kMaxListBytes};
  bool is_all = co_await rows->Update(records.nodes, limits, pace);
  records.RequireComplete();
  if (!is_all) RequireFit(kMaxListBytes + 1);
  co_await rows->ForEach(std::move(see), pace);
}

Task<> SeeNode(NodeRows::Make make, Records records, NodeId id, SeeRow see) {
  if (const store::StoredNode* node = records.nodes.Find(id)) {
    AgedText row;
    make(row, *node);
    see(row);
  }
  co_return;
}

ForEachRow RowsOfNodes(const MakeRow& make) {
  NodeRows::Make make_row = [make](AgedText& row, const store::StoredNode& node) {
    make(row, NodeRow(node, NodeColumns::kDetail));
  };
  auto rows = std::make_shared<NodeRows>(make_row);
  return [make_row, rows](const Records& records, const Request& request, SeeRow see, Pace& pace) {
    const std::string& wanted = request.Parameter("node_id");
    return wanted.empty() ? SeeNodes(rows, records, std::move(see), pace)
                          : SeeNode(make_row, records, NodeId(wanted), std::move(see));
  };
}

// --- Requests ---------------------------------------------------------------

Task<> SeeRequests(MakeRow make, Records records, SeeRow see, Pace& pace) {
  const auto& requests = records.requests.all();
  AgedText text;
  for (auto next = requests.begin(); next != requests.end();) {
    text.Clear();
    make(text, listing::RequestRow(next->second));
    see(text);
    RequestId seen = next->first;
    ++next;
    if (!pace.is_due(text.size())) continue;
    co_await pace.Pause();
    records.RequireComplete();
    next = requests.upper_bound(seen);
  }
}

ForEachRow RowsOfRequests(const MakeRow& make) {
  return [make](const Records& records, const Request&, SeeRow see, Pace& pace) {
    return SeeRequests(make, records, std::move(see), pace);
  };
}

// --- Short lists ------------------------------------------------------------

std::vector<Column> LabelColumns() { return {{"label", "Label"}}; }

Listing Labels(const Records& records) {
  std::set<LabelName> labels;
  for (const Component* pool : records.components.Pools()) {
    labels.insert(pool->supported_labels.begin(), pool->supported_labels.end());
  }
  Listing listing{LabelColumns(), {}};
  for (const LabelName& label : labels) listing.rows.push_back({label.value});
  return listing;
}

Listing UploadRows(const Records& records) { return listing::ListUploads(records.images); }
Listing BuildRows(const Records& records) { return listing::ListBuilds(records.images); }
Listing ImageStatus(const Records& records) { return listing::ListImageStatus(records.images); }

// Without a pause: the cells refer to the records.
Task<> SeeShort(Listing (*list)(const Records&), MakeRow make, Records records, SeeRow see) {
  AgedText text;
  for (const std::vector<Cell>& row : list(records).rows) {
    text.Clear();
    make(text, row);
    see(text);
  }
  co_return;
}

template <Listing (*list)(const Records&)>
ForEachRow RowsOf(const MakeRow& make) {
  return [make](const Records& records, const Request&, SeeRow see, Pace&) {
    return SeeShort(list, make, records, std::move(see));
  };
}

}  // namespace

void RequireFit(std::size_t bytes) {
  if (bytes > kMaxListBytes)
    throw Error(
        Verdict::kQuota,
        "The list is larger than 32 MiB. The lists below /api/v1 have pages, and node_id selects a node.");
}

List NodeList() { return InBothFormats(ColumnsOf(NodeColumns::kDetail), RowsOfNodes); }
List RequestList() { return InBothFormats(listing::RequestColumns(), RowsOfRequests); }
List UploadList() { return InBothFormats(listing::UploadColumns(), RowsOf<UploadRows>); }
List BuildList() { return InBothFormats(listing::BuildColumns(), RowsOf<BuildRows>); }
List ImageStatusList() { return InBothFormats(listing::ImageStatusColumns(), RowsOf<ImageStatus>); }
List LabelList() { return InBothFormats(LabelColumns(), RowsOf<Labels>); }

}  // namespace nodepool::web
