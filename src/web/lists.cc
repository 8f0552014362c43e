#include "web/lists.h"

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
#include "web/negotiation.h"
#include "web/node_rows.h"

namespace nodepool::web {
namespace {

using launcher::Records;
using listing::Column;
using listing::Listing;
using listing::NodeColumns;

// Shows every row of a list.
using SeeRow = std::function<void(const std::vector<Cell>&)>;
using ForEachRow = std::function<void(const Records&, const Request&, const SeeRow& see)>;

void ForEachNode(const Records& records, const Request& request, const SeeRow& see) {
  auto see_node = [&](const store::StoredNode& node) { see(NodeRow(node, NodeColumns::kDetail)); };
  const std::string& wanted = request.Parameter("node_id");
  if (wanted.empty()) {
    for (const auto& [id, node] : records.nodes.all()) see_node(node);
  } else if (const store::StoredNode* node = records.nodes.Find(NodeId(wanted))) {
    see_node(*node);
  }
}

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

// Those of short lists, which are made at once.
ForEachRow RowsOf(Listing (*make)(const Records&)) {
  return [make](const Records& records, const Request&, const SeeRow& see) {
    std::ranges::for_each(make(records).rows, see);
  };
}

// The columns that `fields` names, in their order; unknown names and an empty list restrict
// nothing away.
std::vector<std::size_t> PlacesOf(const std::vector<Column>& columns, const std::string& fields) {
  std::vector<std::string> wanted = Split(fields, ',');
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (fields.empty() || std::ranges::find(wanted, columns[i].key) != wanted.end()) places.push_back(i);
  }
  return places;
}

template <class T>
std::vector<T> At(const std::vector<std::size_t>& places, const std::vector<T>& values) {
  std::vector<T> chosen;
  chosen.reserve(places.size());
  for (std::size_t place : places) chosen.push_back(values[place]);
  return chosen;
}

// Makes an answer's body.
using Append = std::function<void(std::string& body, const Records&, const Request&, WallTime now)>;

Append JsonOf(const std::vector<Column>& columns, const ForEachRow& for_each) {
  listing::JsonRows rows(columns, JsonStyle::kPython);
  return [=](std::string& body, const Records& records, const Request& request, WallTime now) {
    std::string_view separator = "[";
    listing::AgedText text;
    for_each(records, request, [&](const std::vector<Cell>& row) {
      body += std::exchange(separator, CommaOf(JsonStyle::kPython));
      text.Clear();
      rows.Append(text, row);
      text.AppendTo(body, now);
    });
    body += body.empty() ? "[]" : "]";
  };
}

Append TableOf(const std::vector<Column>& columns, const ForEachRow& for_each) {
  return [=](std::string& body, const Records& records, const Request& request, WallTime now) {
    std::vector<std::size_t> places = PlacesOf(columns, request.Parameter("fields"));
    bool shows_all = places.size() == columns.size();
    listing::TableRows rows(At(places, columns), now);
    for_each(records, request, [&](const std::vector<Cell>& row) {
      if (shows_all) {
        rows.Append(row);
      } else {
        rows.Append(At(places, row));
      }
    });
    body = rows.ToString();
  };
}

// The JSON of all nodes is made of rows that are kept.
Append JsonOfNodes() {
  std::vector<Column> columns = ColumnsOf(NodeColumns::kDetail);
  listing::JsonRows json(columns, JsonStyle::kPython);
  auto make = [json](listing::AgedText& row, const store::StoredNode& node) {
    json.Append(row, NodeRow(node, NodeColumns::kDetail));
  };
  return [rows = std::make_shared<NodeRows>(make), some = JsonOf(columns, &ForEachNode)](
             std::string& body, const Records& records, const Request& request, WallTime now) {
    if (!request.Parameter("node_id").empty()) return some(body, records, request, now);
    body += '[';
    rows->Append(body, records.nodes, CommaOf(JsonStyle::kPython), now);
    body += ']';
  };
}

// A list, in the formats that there are.
struct Formats {
  Append json;
  Append text;
};

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
  auto add = [&](std::string path, Formats formats, EndpointDoc doc) {
    auto answer = [&launcher, recent, formats = std::move(formats)](const Request& request) {
      return Answer(launcher, *recent, request, formats);
    };
    endpoints.push_back({"GET", std::move(path), Pure(answer), std::move(doc)});
  };
  auto add_short = [&](std::string path, Listing (*make)(const Records&), std::string summary,
                       const std::vector<Column>& columns) {
    ForEachRow rows = RowsOf(make);
    add(std::move(path), {JsonOf(columns, rows), TableOf(columns, rows)}, DocOf(std::move(summary), columns));
  };
  add_short("/image-list", &Uploads, "Uploads of images.", listing::UploadColumns());
  add_short("/dib-image-list", &Builds, "Builds of images.", listing::BuildColumns());
  add_short("/image-status", &ImageStatus, "What is paused or asked for.", listing::ImageStatusColumns());
  std::vector<Column> columns = ColumnsOf(NodeColumns::kDetail);
  EndpointDoc nodes = DocOf("Nodes.", columns);
  nodes.parameters.push_back({"node_id", "only this node", Text()});
  add("/node-list", {JsonOfNodes(), TableOf(columns, &ForEachNode)}, std::move(nodes));
  add_short("/request-list", &Requests, "Requests for nodes.", listing::RequestColumns());
  add_short("/label-list", &Labels, "Labels that any registered pool offers.", LabelColumns());
  return endpoints;
}

}  // namespace nodepool::web
