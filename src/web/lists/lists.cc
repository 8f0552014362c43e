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
using ForEachRow =
    std::function<void(const Records&, const Request&, const std::function<void(const AgedText&)>& see)>;

// The rows of short lists are made each time.
ForEachRow RowsOf(Listing (*list)(const Records&), const MakeRow& make) {
  return [=](const Records& records, const Request&, const auto& see) {
    AgedText text;
    for (const std::vector<Cell>& row : list(records).rows) {
      text.Clear();
      make(text, row);
      see(text);
    }
  };
}

// The rows of the nodes are cached.
ForEachRow RowsOfNodes(const MakeRow& make) {
  auto make_row = [make](AgedText& row, const store::StoredNode& node) {
    make(row, NodeRow(node, NodeColumns::kDetail));
  };
  return [make_row, rows = std::make_shared<NodeRows>(make_row)](const Records& records,
                                                                 const Request& request, const auto& see) {
    const std::string& wanted = request.Parameter("node_id");
    if (wanted.empty()) {
      rows->Update(records.nodes, {});
      rows->ForEach(see);
    } else if (const store::StoredNode* node = records.nodes.Find(NodeId(wanted))) {
      AgedText row;
      make_row(row, *node);
      see(row);
    }
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

void AppendBody(std::string& body, const Records& records, const List& list, const Request& request,
                Format format, WallTime now) {
  if (format == Format::kJson) {
    body += '[';
    std::string_view separator = "";
    list.json(records, request, [&](const AgedText& row) {
      body += std::exchange(separator, CommaOf(JsonStyle::kPython));
      row.AppendTo(body, now);
    });
    body += ']';
  } else {
    const std::string& keys = request.Parameter("fields");
    listing::TableRows table(list.columns, now, listing::Colors::kNone,
                             keys.empty() ? std::vector<std::string>() : Split(keys, ','));
    list.texts(records, request, [&](const AgedText& row) { table.Append(row); });
    body = table.ToString();
  }
}

Response Answer(const launcher::Launcher& launcher, RecentAnswers& recent, const Request& request,
                const List& list) {
  if (!launcher.records().is_complete()) {
    return ErrorResponse(request, 503, "The records are not read yet, or ZooKeeper is away.");
  }
  std::optional<Format> format = ChooseFormat(AcceptOf(request));
  if (!format) {
    return ErrorResponse(request, 406, "There is text/html, text/plain and application/json.");
  }
  // Other parameters of the query have no effect.
  std::string key = request.path + (format == Format::kJson ? "\njson" : "\ntext");
  for (const char* parameter : {"fields", "node_id"}) key += "\n" + request.Parameter(parameter);
  const char* type = format == Format::kJson ? "application/json" : "text/plain; charset=UTF-8";
  return recent.Answer(request, key, type, [&](std::string& body, WallTime now) {
    AppendBody(body, launcher.records(), list, request, *format, now);
  });
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
    auto answer = [&launcher, recent, list = std::move(list)](const Request& request) {
      return Answer(launcher, *recent, request, list);
    };
    endpoints.push_back({"GET", std::move(path), Pure(answer), std::move(doc), true});
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
