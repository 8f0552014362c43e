#include "web/lists/lists.h"

#include <charconv>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "async/backoff.h"
#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/listing.h"
#include "listing/record_listing.h"
#include "store/cache/caches.h"
#include "web/lists/recent_answers.h"
#include "web/lists/row_stream.h"
#include "web/router.h"

namespace nodepool::web {

namespace {

// A list ends with the answer, so what is larger than this is refused.
inline constexpr std::size_t kMaxListBytes = 32 << 20;

// Throws Error(kQuota) unless a list of so many bytes may be made.
void RequireFit(std::size_t bytes) {
  if (bytes > kMaxListBytes)
    throw Error(Verdict::kQuota,
                "The list is larger than 32 MiB. Ask for pages: limit=1000, and after=ID for the next one.");
}

// Calls `see` with each row of a list as text, and pauses whenever `pace` is due. Throws Error(kRetry) if the
// records become incomplete during a pause.
using SeeRow = std::function<void(const listing::AgedText&)>;
using ForEachRow = std::function<Task<>(const store::Caches&, const Request&, SeeRow, Pace&)>;

// Makes a list as it is sent.
using MakeStream = std::function<Task<RowForm>(const store::Caches&, const Request&, WallTime, Pace&)>;

// A list in a format.
struct Rows {
  ForEachRow for_each;
  MakeStream stream = {};  // not set: it is never large
};

// A list of operations.md 6.
struct List {
  std::vector<listing::Column> columns;
  Rows json;
  Rows texts;  // of cells, each terminated by a 0
  bool has_pages = false;
};

using listing::AgedText;
using listing::Column;
using listing::Listing;
using listing::NodeColumns;
using store::Caches;

listing::TableCells CellsFor(const Request& request, const std::vector<Column>& columns) {
  const std::string& keys = request.Parameter("fields");
  return listing::TableCells(columns, listing::Colors::kNone,
                             keys.empty() ? std::vector<std::string>() : Split(keys, ','));
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

// --- Pages ------------------------------------------------------------------

struct ListPage {
  std::string after;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
};

// The page that a request asks for; nothing: the whole list. Error(kInvalid): the limit is no number.
Expected<std::optional<ListPage>> PageIn(const Request& request) {
  const std::string& limit = request.Parameter("limit");
  ListPage page{request.Parameter("after")};
  if (limit.empty() && page.after.empty()) return std::nullopt;
  const char* end = limit.data() + limit.size();
  auto [rest, error] = std::from_chars(limit.data(), end, page.limit);
  if (!limit.empty() && (error != std::errc() || rest != end))
    return Unexpected(Verdict::kInvalid, "limit is a number.");
  return page;
}

// The entries of a page, by key.
template <class Map, class Make>
Task<> SeePage(const Caches& records, const Map& entries, ListPage page, Make make, SeeRow see, Pace& pace) {
  AgedText text;
  auto next = entries.upper_bound(typename Map::key_type(page.after));
  for (std::size_t count = 0; next != entries.end() && count < page.limit; ++count) {
    text.Clear();
    make(text, next->second);
    see(text);
    auto seen = next->first;
    ++next;
    if (!pace.is_due(text.size())) continue;
    co_await pace.Pause();
    records.RequireSynced();
    next = entries.upper_bound(seen);
  }
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

NodeRows::Make RowOfNode(MakeRow make) {
  return [make = std::move(make)](AgedText& row, const store::StoredNode& node) {
    make(row, NodeRow(node, NodeColumns::kDetail));
  };
}

ForEachRow RowsOfNodes(NodeRows::Make make) {
  auto rows = std::make_shared<NodeRows>(make);
  return [make, rows](const Caches& records, const Request& request, SeeRow see, Pace& pace) {
    const std::string& wanted = request.Parameter("node_id");
    if (!wanted.empty()) return SeeNode(make, records, NodeId(wanted), std::move(see));
    if (std::optional<ListPage> page = PageIn(request).value_or(std::nullopt))
      return SeePage(records, records.nodes.all(), std::move(*page), make, std::move(see), pace);
    return SeeNodes(rows, records, std::move(see), pace);
  };
}

Task<RowForm> JsonOfAllNodes(NodeRows::Make make) { co_return JsonForm(std::move(make)); }

// --- Requests ---------------------------------------------------------------

Rows RowsOfRequests(const MakeRow& make) {
  auto make_row = [make](AgedText& row, const store::StoredRequest& request) {
    make(row, listing::RequestRow(request));
  };
  return {[make_row](const Caches& records, const Request& request, SeeRow see, Pace& pace) {
    ListPage page = PageIn(request).value_or(std::nullopt).value_or(ListPage());
    return SeePage(records, records.requests.all(), std::move(page), make_row, std::move(see), pace);
  }};
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
Rows RowsOf(const MakeRow& make) {
  return {[make](const Caches& records, const Request&, SeeRow see, Pace&) {
    return SeeShort(list, make, records, std::move(see));
  }};
}

List InBothFormats(const std::vector<Column>& columns, Rows (*rows)(const MakeRow&)) {
  return {columns, rows(JsonOf(columns)), rows(TextsOf(columns))};
}

List NodeList() {
  std::vector<Column> columns = ColumnsOf(NodeColumns::kDetail);
  NodeRows::Make json = RowOfNode(JsonOf(columns)), texts = RowOfNode(TextsOf(columns));
  auto stream_json = [json](const Caches&, const Request&, WallTime, Pace&) { return JsonOfAllNodes(json); };
  auto stream_texts = [columns, texts](const Caches& records, const Request& request, WallTime now,
                                       Pace& pace) {
    return TableForm(CellsFor(request, columns), texts, records.nodes, now, pace);
  };
  return {columns, {RowsOfNodes(json), stream_json}, {RowsOfNodes(texts), stream_texts}, true};
}

List RequestList() {
  List list = InBothFormats(listing::RequestColumns(), RowsOfRequests);
  list.has_pages = true;
  return list;
}

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
  co_await list.json.for_each(records, request, append, pace);
  body += ']';
}

Task<> AppendTable(std::string& body, const Caches& records, const List& list, const Request& request,
                   WallTime now, Pace& pace) {
  listing::TableRows rows(CellsFor(request, list.columns), now);
  auto append = [&](const AgedText& row) { rows.Append(row); };
  co_await list.texts.for_each(records, request, append, pace);
  co_await rows.table().AppendTo(body, pace);
}

// What makes the lists, and what those have in common that are sent as they are made.
struct Lists {
  Loop& loop;
  const launcher::Launcher& launcher;
  std::shared_ptr<RecentAnswers> recent;
  std::size_t kept_nodes;
  std::shared_ptr<RowStreams> streams;
};

bool IsLarge(const Lists& lists, const Rows& rows, const Request& request,
             const std::optional<ListPage>& page) {
  return rows.stream && !page && request.Parameter("node_id").empty() &&
         lists.launcher.records().nodes.all().size() > lists.kept_nodes;
}

Task<Response> AnswerLarge(const Lists& lists, const Rows& rows, Request request, std::string type) {
  const Caches& records = lists.launcher.records();
  Gate::Pass turn = co_await lists.streams->EnterTurn();
  if (!lists.streams->has_place())
    co_return ErrorResponse(request, 503, "Too many large lists are being sent. Ask for pages: limit=1000.");
  Response response;
  response.content_type = std::move(type);
  WallTime now = lists.loop.Now();
  AddCachingHeaders(response, now);
  bool is_compressed = AddCoding(response, request);
  Pace pace(lists.loop);
  RowForm form = co_await rows.stream(records, request, now, pace);
  response.stream = RowStreams::Begin(lists.streams, records, std::move(form), is_compressed);
  co_return response;
}

Task<Response> AnswerList(std::shared_ptr<const Lists> lists, std::shared_ptr<const List> list,
                          Request request) {
  const Caches& records = lists->launcher.records();
  if (!records.synced()) co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  std::optional<Format> format = ChooseFormat(AcceptOf(request));
  if (!format) {
    co_return ErrorResponse(request, 406, "There is text/html, text/plain and application/json.");
  }
  Expected<std::optional<ListPage>> page = std::nullopt;
  if (list->has_pages) page = PageIn(request);
  if (!page) co_return ErrorResponse(request, 400, page.error().message());
  bool is_json = format == Format::kJson;
  const Rows& rows = is_json ? list->json : list->texts;
  const char* type = is_json ? "application/json" : "text/plain; charset=UTF-8";
  if (IsLarge(*lists, rows, request, *page))
    co_return co_await AnswerLarge(*lists, rows, std::move(request), type);
  // Other parameters of the query have no effect.
  std::string key = request.path + (is_json ? "\njson" : "\ntext");
  for (const char* parameter : {"fields", "node_id", "limit", "after"})
    key += "\n" + request.Parameter(parameter);
  auto append = is_json ? AppendJsonRows : AppendTable;
  auto make = [&](std::string& body, WallTime now, Pace& pace) {
    return append(body, records, *list, request, now, pace);
  };
  co_return co_await lists->recent->Answer(request, std::move(key), type, make);
}

// The JSON type of the rows, for any type of cell.
JsonType TypeOf(const std::vector<listing::Column>& columns) {
  std::vector<FieldDoc> fields;
  for (const listing::Column& column : columns) fields.push_back({column.key, Any(), column.title});
  return ListOf(ObjectOf(std::move(fields)));
}

EndpointDoc DocOf(std::string summary, const List& list) {
  EndpointDoc doc{std::move(summary),
                  {{"fields", "keys of the columns that the text shows, joined with commas", Text()}},
                  {{"text/plain", Text()}, {"application/json", TypeOf(list.columns)}},
                  {406, 503}};
  if (!list.has_pages) return doc;
  doc.parameters.push_back({"after", "only entries after the one with this `id`: the next page", Text()});
  doc.parameters.push_back({"limit", "at most so many entries", Whole()});
  doc.errors.push_back(400);
  return doc;
}

}  // namespace

std::vector<Endpoint> ListEndpoints(Loop& loop, const launcher::Launcher& launcher,
                                    std::shared_ptr<RecentAnswers> recent, std::size_t kept_nodes) {
  auto lists = std::make_shared<const Lists>(
      Lists{loop, launcher, std::move(recent), kept_nodes, std::make_shared<RowStreams>(loop)});
  std::vector<Endpoint> endpoints;
  auto add = [&](std::string path, std::string summary, List list,
                 std::vector<ParameterDoc> parameters = {}) {
    EndpointDoc doc = DocOf(std::move(summary), list);
    doc.parameters.insert(doc.parameters.end(), parameters.begin(), parameters.end());
    auto shared = std::make_shared<const List>(std::move(list));
    auto answer = [lists, shared](Request request) { return AnswerList(lists, shared, std::move(request)); };
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
