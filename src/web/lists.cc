#include "web/lists.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/node_listing.h"
#include "listing/request_listing.h"
#include "model/json.h"
#include "web/caching.h"
#include "web/negotiation.h"

namespace nodepool::web {
namespace {

using launcher::Records;
using listing::Listing;

constexpr Duration kFresh = std::chrono::seconds(1);
// Answers that are kept; they are large, and clients ask for few different ones.
constexpr std::size_t kMostKept = 8;

Listing NodeList(const Records& records, const Request& request, WallTime now) {
  std::vector<const store::StoredNode*> nodes;
  const std::string& wanted = request.Parameter("node_id");
  if (wanted.empty()) {
    for (const auto& [id, node] : records.nodes.all()) nodes.push_back(&node);
  } else if (const store::StoredNode* node = records.nodes.Find(NodeId(wanted))) {
    nodes.push_back(node);
  }
  return ListNodes(nodes, listing::NodeColumns::kDetail, now);
}

Listing RequestList(const Records& records, const Request&, WallTime) {
  return listing::ListRequests(records.requests.all());
}

Listing ImageList(const Records& records, const Request&, WallTime) {
  return listing::ListUploads(records.images);
}

Listing DibImageList(const Records& records, const Request&, WallTime) {
  return listing::ListBuilds(records.images);
}

Listing ImageStatus(const Records& records, const Request&, WallTime) {
  return listing::ListImageStatus(records.images);
}

Listing LabelList(const Records& records, const Request&, WallTime) {
  std::set<LabelName> labels;
  for (const Component* pool : records.components.Pools()) {
    labels.insert(pool->supported_labels.begin(), pool->supported_labels.end());
  }
  Listing listing{{{"label", "Label"}}, {}};
  for (const LabelName& label : labels) listing.rows.push_back({label.value});
  return listing;
}

// Keeps the columns that `fields` names, in their order; unknown names and an empty list
// restrict nothing away.
Listing WithFields(Listing listing, const std::string& fields) {
  std::vector<std::string> wanted = Split(fields, ',');
  auto is_wanted = [&](const listing::Column& column) {
    return std::ranges::find(wanted, column.key) != wanted.end();
  };
  if (fields.empty()) return listing;
  Listing kept;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < listing.columns.size(); ++i) {
    if (!is_wanted(listing.columns[i])) continue;
    places.push_back(i);
    kept.columns.push_back(listing.columns[i]);
  }
  for (const auto& row : listing.rows) {
    boost::json::array& cells = kept.rows.emplace_back();
    for (std::size_t place : places) cells.push_back(row[place]);
  }
  return kept;
}

// As Python writes it, cell by cell.
std::string ListingJson(const Listing& listing) {
  std::string text = "[";
  for (const auto& row : listing.rows) {
    text += text.size() == 1 ? "{" : ", {";
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ", ";
      text += '"' + listing.columns[i].key + "\": " + WriteJson(row[i]);
    }
    text += '}';
  }
  return text + ']';
}

// Whether the client has what was computed at `made`. Times have whole seconds there.
bool IsKnown(const Request& request, WallTime made) {
  std::optional<WallTime> known = ParseHttpDate(request.Header("if-modified-since"));
  return known && *known >= std::chrono::floor<std::chrono::seconds>(made);
}

class Lists {
 public:
  using Make = Listing (*)(const Records&, const Request&, WallTime now);

  Lists(Loop& loop, const launcher::Launcher& launcher) : loop_(loop), launcher_(launcher) {}

  Response Answer(const Request& request, Make make);

 private:
  struct Made {
    WallTime at;
    std::string body;
  };

  const Made& Find(const Request& request, Format format, Make make);

  Loop& loop_;
  const launcher::Launcher& launcher_;
  std::map<std::string, Made> recent_;  // by what was asked
};

const Lists::Made& Lists::Find(const Request& request, Format format, Make make) {
  WallTime now = loop_.Now();
  // What else stands in the query has no say.
  std::string key = request.path + (format == Format::kJson ? "\njson" : "\ntext");
  for (const char* parameter : {"fields", "node_id"}) key += "\n" + request.Parameter(parameter);
  if (auto found = recent_.find(key); found != recent_.end() && now - found->second.at < kFresh) {
    return found->second;
  }
  std::erase_if(recent_, [&](const auto& entry) { return now - entry.second.at >= kFresh; });
  if (recent_.size() >= kMostKept) recent_.clear();
  Listing listing = make(launcher_.records(), request, now);
  std::string body = format == Format::kJson
                         ? ListingJson(listing)
                         : ToTable(WithFields(std::move(listing), request.Parameter("fields")), now);
  Made& made = recent_[key];
  made = {now, std::move(body)};
  return made;
}

Response Lists::Answer(const Request& request, Make make) {
  if (!launcher_.records().is_complete()) {
    return ErrorResponse(request, 503, "The records are not read yet, or ZooKeeper is away.");
  }
  auto accept = request.headers.find("accept");
  std::optional<Format> format = ChooseFormat(
      accept == request.headers.end() ? std::nullopt : std::optional<std::string_view>(accept->second));
  if (!format) {
    return ErrorResponse(request, 406, "There is text/html, text/plain and application/json.");
  }
  const Made& made = Find(request, *format, make);
  Response response;
  response.content_type = *format == Format::kJson ? "application/json" : "text/plain; charset=UTF-8";
  AddCachingHeaders(response, made.at);
  if (IsKnown(request, made.at)) {
    response.status = 304;
  } else {
    response.body = made.body;
  }
  return response;
}

}  // namespace

std::vector<Endpoint> ListEndpoints(Loop& loop, const launcher::Launcher& launcher) {
  std::vector<Endpoint> endpoints;
  auto lists = std::make_shared<Lists>(loop, launcher);
  auto add = [&](std::string path, Lists::Make make) {
    auto answer = [lists, make](const Request& request) { return lists->Answer(request, make); };
    endpoints.push_back({"GET", std::move(path), Pure(answer)});
  };
  add("/image-list", &ImageList);
  add("/dib-image-list", &DibImageList);
  add("/image-status", &ImageStatus);
  add("/node-list", &NodeList);
  add("/request-list", &RequestList);
  add("/label-list", &LabelList);
  return endpoints;
}

}  // namespace nodepool::web
