#include "web/lists.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/node_listing.h"
#include "listing/request_listing.h"
#include "web/negotiation.h"

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

void AppendBody(std::string& body, Listing listing, const Request& request, Format format, WallTime now) {
  if (format == Format::kJson) return AppendJson(body, listing, now, JsonStyle::kPython);
  KeepFields(listing, request.Parameter("fields"));
  body = ToTable(listing, now);
}

using Make = Listing (*)(const Records&, const Request&);

Response Answer(const launcher::Launcher& launcher, RecentAnswers& recent, const Request& request,
                Make make) {
  if (!launcher.records().is_complete()) {
    return ErrorResponse(request, 503, "The records are not read yet, or ZooKeeper is away.");
  }
  auto accept = request.headers.find("accept");
  std::optional<Format> chosen = ChooseFormat(
      accept == request.headers.end() ? std::nullopt : std::optional<std::string_view>(accept->second));
  if (!chosen) {
    return ErrorResponse(request, 406, "There is text/html, text/plain and application/json.");
  }
  Format format = *chosen;
  // What else stands in the query has no say.
  std::string key = request.path + (format == Format::kJson ? "\njson" : "\ntext");
  for (const char* parameter : {"fields", "node_id"}) key += "\n" + request.Parameter(parameter);
  const char* type = format == Format::kJson ? "application/json" : "text/plain; charset=UTF-8";
  return recent.Answer(request, key, type, [&](std::string& body, WallTime now) {
    AppendBody(body, make(launcher.records(), request), request, format, now);
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
  auto add = [&](std::string path, Make make, EndpointDoc doc) {
    auto answer = [&launcher, recent, make](const Request& request) {
      return Answer(launcher, *recent, request, make);
    };
    endpoints.push_back({"GET", std::move(path), Pure(answer), std::move(doc)});
  };
  add("/image-list", &ImageList, DocOf("Uploads of images.", listing::UploadColumns()));
  add("/dib-image-list", &DibImageList, DocOf("Builds of images.", listing::BuildColumns()));
  add("/image-status", &ImageStatus, DocOf("What is paused or asked for.", listing::ImageStatusColumns()));
  EndpointDoc nodes = DocOf("Nodes.", ColumnsOf(listing::NodeColumns::kDetail));
  nodes.parameters.push_back({"node_id", "only this node", Text()});
  add("/node-list", &NodeList, std::move(nodes));
  add("/request-list", &RequestList, DocOf("Requests for nodes.", listing::RequestColumns()));
  add("/label-list", &LabelList, DocOf("Labels that any registered pool offers.", LabelColumns()));
  return endpoints;
}

}  // namespace nodepool::web
