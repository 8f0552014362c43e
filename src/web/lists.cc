#include "web/lists.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/node_listing.h"
#include "listing/request_listing.h"
#include "web/negotiation.h"
#include "web/node_rows.h"

namespace nodepool::web {
namespace {

using launcher::Records;
using listing::Listing;

Listing NodeList(const Records& records, const Request& request) {
  std::vector<const store::StoredNode*> nodes;
  const std::string& wanted = request.Parameter("node_id");
  if (wanted.empty()) {
    for (const auto& [id, node] : records.nodes.all()) nodes.push_back(&node);
  } else if (const store::StoredNode* node = records.nodes.Find(NodeId(wanted))) {
    nodes.push_back(node);
  }
  return ListNodes(nodes, listing::NodeColumns::kDetail);
}

Listing RequestList(const Records& records, const Request&) {
  return listing::ListRequests(records.requests.all());
}

Listing ImageList(const Records& records, const Request&) { return listing::ListUploads(records.images); }

Listing DibImageList(const Records& records, const Request&) { return listing::ListBuilds(records.images); }

Listing ImageStatus(const Records& records, const Request&) {
  return listing::ListImageStatus(records.images);
}

std::vector<listing::Column> LabelColumns() { return {{"label", "Label"}}; }

Listing LabelList(const Records& records, const Request&) {
  std::set<LabelName> labels;
  for (const Component* pool : records.components.Pools()) {
    labels.insert(pool->supported_labels.begin(), pool->supported_labels.end());
  }
  Listing listing{LabelColumns(), {}};
  for (const LabelName& label : labels) listing.rows.push_back({label.value});
  return listing;
}

// Keeps the columns that `fields` names, in their order; unknown names and an empty list
// restrict nothing away.
void KeepFields(Listing& listing, const std::string& fields) {
  if (fields.empty()) return;
  std::vector<std::string> wanted = Split(fields, ',');
  auto is_unwanted = [&](const listing::Column& column) {
    return std::ranges::find(wanted, column.key) == wanted.end();
  };
  for (std::vector<Cell>& row : listing.rows) {
    auto column = listing.columns.begin();
    std::erase_if(row, [&](const Cell&) { return is_unwanted(*column++); });
  }
  std::erase_if(listing.columns, is_unwanted);
}

using Append = std::function<void(std::string& body, const Records&, const Request&, WallTime now)>;

// A list in the formats that there are.
struct Formats {
  Append json;
  Append text;
};

Formats FormatsOf(Listing (*make)(const Records&, const Request&)) {
  auto json = [make](std::string& body, const Records& records, const Request& request, WallTime now) {
    AppendJson(body, make(records, request), now, JsonStyle::kPython);
  };
  auto text = [make](std::string& body, const Records& records, const Request& request, WallTime now) {
    Listing listing = make(records, request);
    KeepFields(listing, request.Parameter("fields"));
    body = ToTable(listing, now);
  };
  return {json, text};
}

// The JSON of all nodes is made of rows that are kept.
Formats NodeFormats() {
  Formats formats = FormatsOf(&NodeList);
  listing::JsonRows json(ColumnsOf(listing::NodeColumns::kDetail), JsonStyle::kPython);
  auto make = [json](listing::AgedText& row, const store::StoredNode& node) {
    json.Append(row, NodeRow(node, listing::NodeColumns::kDetail));
  };
  formats.json = [rows = std::make_shared<NodeRows>(make), some = formats.json](
                     std::string& body, const Records& records, const Request& request, WallTime now) {
    if (!request.Parameter("node_id").empty()) return some(body, records, request, now);
    body += '[';
    rows->Append(body, records.nodes, CommaOf(JsonStyle::kPython), now);
    body += ']';
  };
  return formats;
}

Response Answer(const launcher::Launcher& launcher, RecentAnswers& recent, const Request& request,
                const Formats& formats) {
  if (!launcher.records().is_complete()) {
    return ErrorResponse(request, 503, "The records are not read yet, or ZooKeeper is away.");
  }
  auto accept = request.headers.find("accept");
  std::optional<Format> format = ChooseFormat(
      accept == request.headers.end() ? std::nullopt : std::optional<std::string_view>(accept->second));
  if (!format) {
    return ErrorResponse(request, 406, "There is text/html, text/plain and application/json.");
  }
  bool is_json = format == Format::kJson;
  // What else stands in the query has no say.
  std::string key = request.path + (is_json ? "\njson" : "\ntext");
  for (const char* parameter : {"fields", "node_id"}) key += "\n" + request.Parameter(parameter);
  const char* type = is_json ? "application/json" : "text/plain; charset=UTF-8";
  const Append& append = is_json ? formats.json : formats.text;
  return recent.Answer(request, key, type, [&](std::string& body, WallTime now) {
    append(body, launcher.records(), request, now);
  });
}

// What JSON shows, of any type.
JsonType RowsOf(const std::vector<listing::Column>& columns) {
  std::vector<FieldDoc> fields;
  for (const listing::Column& column : columns) fields.push_back({column.key, Any(), column.title});
  return ListOf(ObjectOf(std::move(fields)));
}

EndpointDoc DocOf(std::string summary, const std::vector<listing::Column>& columns) {
  return {std::move(summary),
          {{"fields", "keys of the columns that the text shows, joined with commas", Text()}},
          {{"text/plain", Text()}, {"application/json", RowsOf(columns)}},
          {406, 503}};
}

}  // namespace

std::vector<Endpoint> ListEndpoints(const launcher::Launcher& launcher,
                                    std::shared_ptr<RecentAnswers> recent) {
  std::vector<Endpoint> endpoints;
  auto add = [&](std::string path, Formats formats, EndpointDoc doc) {
    auto answer = [&launcher, recent, formats = std::move(formats)](const Request& request) {
      return Answer(launcher, *recent, request, formats);
    };
    endpoints.push_back({"GET", std::move(path), Pure(answer), std::move(doc)});
  };
  add("/image-list", FormatsOf(&ImageList), DocOf("Uploads of images.", listing::UploadColumns()));
  add("/dib-image-list", FormatsOf(&DibImageList), DocOf("Builds of images.", listing::BuildColumns()));
  add("/image-status", FormatsOf(&ImageStatus),
      DocOf("What is paused or asked for.", listing::ImageStatusColumns()));
  EndpointDoc nodes = DocOf("Nodes.", ColumnsOf(listing::NodeColumns::kDetail));
  nodes.parameters.push_back({"node_id", "only this node", Text()});
  add("/node-list", NodeFormats(), std::move(nodes));
  add("/request-list", FormatsOf(&RequestList), DocOf("Requests for nodes.", listing::RequestColumns()));
  add("/label-list", FormatsOf(&LabelList), DocOf("Labels that any registered pool offers.", LabelColumns()));
  return endpoints;
}

}  // namespace nodepool::web
