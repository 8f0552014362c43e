#include "web/lists/lists.h"

#include <memory>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "web/lists/list_rows.h"
#include "web/lists/negotiation.h"

namespace nodepool::web {
namespace {

using launcher::Records;
using listing::AgedText;

Task<> AppendJsonRows(std::string& body, const Records& records, const List& list, const Request& request,
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

Task<> AppendTable(std::string& body, const Records& records, const List& list, const Request& request,
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
