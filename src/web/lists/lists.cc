#include "web/lists/lists.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/node_listing.h"
#include "listing/request_listing.h"
#include "web/lists/negotiation.h"
#include "web/lists/node_rows.h"

namespace nodepool::web {
namespace {

using launcher::Records;
using listing::AgedText;
using listing::Column;
using listing::Listing;
using listing::NodeColumns;
using See = NodeRows::See;

// A list ends with the answer, so what is larger than this is not made.
constexpr std::size_t kMaxListBytes = 32 << 20;

Listing Requests(const Records& records) { return listing::ListRequests(records.requests.all()); }
Listing Uploads(const Records& records) { return listing::ListUploads(records.images); }
Listing Builds(const Records& records) { return listing::ListBuilds(records.images); }
Listing ImageStatus(const Records& records) { return listing::ListImageStatus(records.images); }

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

// Makes a row in a format.
using MakeRow = std::function<void(AgedText&, const std::vector<Cell>&)>;

MakeRow JsonOf(const std::vector<Column>& columns) {
  return [rows = listing::JsonRows(columns, JsonStyle::kPython)](
             AgedText& out, const std::vector<Cell>& row) { rows.Append(out, row); };
}

MakeRow TextsOf(const std::vector<Column>& columns) {
  return [columns](AgedText& out, const std::vector<Cell>& row) { AppendTexts(out, columns, row); };
}

// Calls a function with the rows of a list in a format.
using ForEachRow = std::function<Task<>(const Records&, const Request&, See see, Pace&)>;

// Without a pause: the cells refer to the records.
Task<> SeeRows(Listing (*list)(const Records&), MakeRow make, Records records, See see) {
  AgedText text;
  for (const std::vector<Cell>& row : list(records).rows) {
    text.Clear();
    make(text, row);
    see(text);
  }
  co_return;
}

// The rows of short lists are made each time.
ForEachRow RowsOf(Listing (*list)(const Records&), const MakeRow& make) {
  return [=](const Records& records, const Request&, See see, Pace&) {
    return SeeRows(list, make, records, std::move(see));
  };
}

Task<> SeeNodes(std::shared_ptr<NodeRows> rows, Records records, See see, Pace& pace) {
  NodeRows::Limits limits{.bytes = kMaxListBytes};
  bool is_all = co_await rows->Update(records.nodes, limits, pace);
  records.RequireComplete();
  if (!is_all)
    throw Error(
        Verdict::kQuota,
        "The list of nodes is larger than 32 MiB. /api/v1/nodes has it in pages; node_id selects a node.");
  co_await rows->ForEach(std::move(see), pace);
}

Task<> SeeNode(NodeRows::Make make, Records records, NodeId id, See see) {
  if (const store::StoredNode* node = records.nodes.Find(id)) {
    AgedText row;
    make(row, *node);
    see(row);
  }
  co_return;
}

// The rows of the nodes are cached.
ForEachRow RowsOfNodes(const MakeRow& make) {
  NodeRows::Make make_row = [make](AgedText& row, const store::StoredNode& node) {
    make(row, NodeRow(node, NodeColumns::kDetail));
  };
  auto rows = std::make_shared<NodeRows>(make_row);
  return [make_row, rows](const Records& records, const Request& request, See see, Pace& pace) {
    const std::string& wanted = request.Parameter("node_id");
    return wanted.empty() ? SeeNodes(rows, records, std::move(see), pace)
                          : SeeNode(make_row, records, NodeId(wanted), std::move(see));
  };
}

struct List {
  std::vector<Column> columns;
  ForEachRow json;
  ForEachRow texts;
};

List ListOfNodes() {
  std::vector<Column> columns = ColumnsOf(NodeColumns::kDetail);
  return {columns, RowsOfNodes(JsonOf(columns)), RowsOfNodes(TextsOf(columns))};
}

List ShortList(Listing (*list)(const Records&), const std::vector<Column>& columns) {
  return {columns, RowsOf(list, JsonOf(columns)), RowsOf(list, TextsOf(columns))};
}

Task<> AppendJsonRows(std::string& body, const Records& records, const List& list, const Request& request,
                      WallTime now, Pace& pace) {
  body += '[';
  std::string_view separator = "";
  auto append = [&](const AgedText& row) {
    body += std::exchange(separator, CommaOf(JsonStyle::kPython));
    row.AppendTo(body, now);
  };
  co_await list.json(records, request, append, pace);
  body += ']';
}

Task<> AppendTable(std::string& body, const Records& records, const List& list, const Request& request,
                   WallTime now, Pace& pace) {
  const std::string& keys = request.Parameter("fields");
  listing::TableRows table(list.columns, now, listing::Colors::kNone,
                           keys.empty() ? std::vector<std::string>() : Split(keys, ','));
  auto append = [&](const AgedText& row) { table.Append(row); };
  co_await list.texts(records, request, append, pace);
  body = table.ToString();
}

Task<Response> Answer(const launcher::Launcher& launcher, std::shared_ptr<RecentAnswers> recent,
                      std::shared_ptr<const List> list, Request request) {
  if (!launcher.records().is_complete()) {
    co_return ErrorResponse(request, 503, launcher::Records::kNotComplete);
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
  auto make = [&, records = launcher.records()](std::string& body, WallTime now, Pace& pace) {
    return append(body, records, *list, request, now, pace);
  };
  co_return co_await recent->Answer(request, std::move(key), type, make);
}

// The JSON type of the rows, for any type of cell.
JsonType TypeOf(const std::vector<Column>& columns) {
  std::vector<FieldDoc> fields;
  for (const Column& column : columns) fields.push_back({column.key, Any(), column.title});
  return ListOf(ObjectOf(std::move(fields)));
}

EndpointDoc DocOf(std::string summary, const std::vector<Column>& columns) {
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
      return Answer(launcher, recent, shared, std::move(request));
    };
    endpoints.push_back({"GET", std::move(path), answer, std::move(doc), true});
  };
  add("/image-list", "Uploads of images.", ShortList(&Uploads, listing::UploadColumns()));
  add("/dib-image-list", "Builds of images.", ShortList(&Builds, listing::BuildColumns()));
  add("/image-status", "What is paused or asked for.",
      ShortList(&ImageStatus, listing::ImageStatusColumns()));
  add("/node-list", "Nodes.", ListOfNodes(), {{"node_id", "only this node", Text()}});
  add("/request-list", "Requests for nodes.", ShortList(&Requests, listing::RequestColumns()));
  add("/label-list", "Labels that any registered pool offers.", ShortList(&Labels, LabelColumns()));
  return endpoints;
}

}  // namespace nodepool::web
