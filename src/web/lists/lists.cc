#include "web/lists/lists.h"

#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "async/pace.h"
#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/listing.h"
#include "listing/node_listing.h"
#include "listing/request_listing.h"
#include "store/cache/caches.h"
#include "web/lists/negotiation.h"
#include "web/lists/node_rows.h"
#include "web/router.h"

namespace nodepool::web {

namespace {

// A list ends with the answer, so what is larger than this is refused.
inline constexpr std::size_t kMaxListBytes = 32 << 20;

// Throws Error(kQuota) unless a list of so many bytes may be made.
void RequireFit(std::size_t bytes) {
  if (bytes > kMaxListBytes)
    throw Error(
        Verdict::kQuota,
        "The list is larger than 32 MiB. The lists below /api/v1 have pages, and node_id selects a node.");
}

// Calls `see` with each row of a list as text, and pauses whenever `pace` is due. Throws Error(kRetry) if the
// records become incomplete during a pause.
using SeeRow = std::function<void(const listing::AgedText&)>;
using ForEachRow = std::function<Task<>(const store::Caches&, const Request&, SeeRow, Pace&)>;

// A list of operations.md 6.
struct List {
  std::vector<listing::Column> columns;
  ForEachRow json;
  ForEachRow texts;  // of cells, each terminated by a 0
};

using listing::AgedText;
using listing::Column;
using listing::Listing;
using listing::NodeColumns;
using store::Caches;

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

Task<> SeeNodes(std::shared_ptr<NodeRows> rows, const Caches& records, SeeRow see, Pace& pace) {
  NodeRows::Limits limits{.bytes = kMaxListBytes};
  bool is_all = co_await rows->Update(records.nodes, limits, pace);
  records.RequireSynced();
  if (!is_all) RequireFit(kMaxListBytes + 1);
  co_await rows->ForEach(std::move(see), pace);
}

Task<> SeeNode(NodeRows::Make make, const Caches& records, NodeId id, SeeRow see) {
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
  return [make_row, rows](const Caches& records, const Request& request, SeeRow see, Pace& pace) {
    const std::string& wanted = request.Parameter("node_id");
    return wanted.empty() ? SeeNodes(rows, records, std::move(see), pace)
                          : SeeNode(make_row, records, NodeId(wanted), std::move(see));
  };
}

// --- Requests ---------------------------------------------------------------

Task<> SeeRequests(MakeRow make, const Caches& records, SeeRow see, Pace& pace) {
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
    records.RequireSynced();
    next = requests.upper_bound(seen);
  }
}

ForEachRow RowsOfRequests(const MakeRow& make) {
  return [make](const Caches& records, const Request&, SeeRow see, Pace& pace) {
    return SeeRequests(make, records, std::move(see), pace);
  };
}

// --- Short lists ------------------------------------------------------------

std::vector<Column> LabelColumns() { return {{"label", "Label"}}; }

Listing Labels(const Caches& records) {
  std::set<LabelName> labels;
  for (const Component* pool : records.components.Pools()) {
    labels.insert(pool->supported_labels.begin(), pool->supported_labels.end());
  }
  Listing listing{LabelColumns(), {}};
  for (const LabelName& label : labels) listing.rows.push_back({label.value});
  return listing;
}

Listing UploadRows(const Caches& records) { return listing::ListUploads(records.images); }
Listing BuildRows(const Caches& records) { return listing::ListBuilds(records.images); }
Listing ImageStatus(const Caches& records) { return listing::ListImageStatus(records.images); }

// Without a pause: the cells refer to the records.
Task<> SeeShort(Listing (*list)(const Caches&), MakeRow make, const Caches& records, SeeRow see) {
  AgedText text;
  for (const std::vector<Cell>& row : list(records).rows) {
    text.Clear();
    make(text, row);
    see(text);
  }
  co_return;
}

template <Listing (*list)(const Caches&)>
ForEachRow RowsOf(const MakeRow& make) {
  return [make](const Caches& records, const Request&, SeeRow see, Pace&) {
    return SeeShort(list, make, records, std::move(see));
  };
}

List NodeList() { return InBothFormats(ColumnsOf(NodeColumns::kDetail), RowsOfNodes); }
List RequestList() { return InBothFormats(listing::RequestColumns(), RowsOfRequests); }
List UploadList() { return InBothFormats(listing::UploadColumns(), RowsOf<UploadRows>); }
List BuildList() { return InBothFormats(listing::BuildColumns(), RowsOf<BuildRows>); }
List ImageStatusList() { return InBothFormats(listing::ImageStatusColumns(), RowsOf<ImageStatus>); }
List LabelList() { return InBothFormats(LabelColumns(), RowsOf<Labels>); }

Task<> AppendJsonRows(std::string& body, const Caches& records, const List& list, const Request& request,
                      WallTime now, Pace& pace) {
  body += '[';
  std::string_view separator = "";
  auto append = [&](const AgedText& row) {
    body += std::exchange(separator, CommaOf(JsonStyle::kPython));
    row.AppendTo(body, now);
    RequireFit(body.size());
  };
  co_await list.json(records, request, append, pace);
  body += ']';
}

Task<> AppendTable(std::string& body, const Caches& records, const List& list, const Request& request,
                   WallTime now, Pace& pace) {
  const std::string& keys = request.Parameter("fields");
  listing::TableRows table(list.columns, now, listing::Colors::kNone,
                           keys.empty() ? std::vector<std::string>() : Split(keys, ','));
  auto append = [&](const AgedText& row) { table.Append(row); };
  co_await list.texts(records, request, append, pace);
  body = table.ToString();
}

Task<Response> AnswerList(const launcher::Launcher& launcher, std::shared_ptr<RecentAnswers> recent,
                          std::shared_ptr<const List> list, Request request) {
  if (!launcher.records().synced()) {
    co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  }
  std::optional<Format> format = ChooseFormat(AcceptOf(request));
  if (!format) {
    co_return ErrorResponse(request, 406, "There is text/html, text/plain and application/json.");
  }
  // Other parameters of the query have no effect.
  std::string key = request.path + (format == Format::kJson ? "\njson" : "\ntext");
  for (const char* parameter : {"fields", "node_id"}) key += "\n" + request.Parameter(parameter);
  const char* type = format == Format::kJson ? "application/json" : "text/plain; charset=UTF-8";
  auto append = format == Format::kJson ? AppendJsonRows : AppendTable;
  auto make = [&](std::string& body, WallTime now, Pace& pace) {
    return append(body, launcher.records(), *list, request, now, pace);
  };
  co_return co_await recent->Answer(request, std::move(key), type, make);
}

// The JSON type of the rows, for any type of cell.
JsonType TypeOf(const std::vector<listing::Column>& columns) {
  std::vector<FieldDoc> fields;
  for (const listing::Column& column : columns) fields.push_back({column.key, Any(), column.title});
  return ListOf(ObjectOf(std::move(fields)));
}

EndpointDoc DocOf(std::string summary, const std::vector<listing::Column>& columns) {
  return {std::move(summary),
          {{"fields", "keys of the columns that the text shows, joined with commas", Text()}},
          {{"text/plain", Text()}, {"application/json", TypeOf(columns)}},
          {406, 503}};
}

}  // namespace

std::vector<Endpoint> ListEndpoints(const launcher::Launcher& launcher,
                                    std::shared_ptr<RecentAnswers> recent) {
  std::vector<Endpoint> endpoints;
  auto add = [&](std::string path, std::string summary, List list,
                 std::vector<ParameterDoc> parameters = {}) {
    EndpointDoc doc = DocOf(std::move(summary), list.columns);
    doc.parameters.insert(doc.parameters.end(), parameters.begin(), parameters.end());
    auto shared = std::make_shared<const List>(std::move(list));
    auto answer = [&launcher, recent, shared](Request request) {
      return AnswerList(launcher, recent, shared, std::move(request));
    };
    endpoints.push_back({"GET", std::move(path), answer, std::move(doc), true});
  };
  add("/image-list", "Uploads of images.", UploadList());
  add("/dib-image-list", "Builds of images.", BuildList());
  add("/image-status", "What is paused or asked for.", ImageStatusList());
  add("/node-list", "Nodes.", NodeList(), {{"node_id", "only this node", Text()}});
  add("/request-list", "Requests for nodes.", RequestList());
  add("/label-list", "Labels that any registered pool offers.", LabelList());
  return endpoints;
}

}  // namespace nodepool::web
