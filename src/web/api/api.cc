#include "web/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "web/api/api_fields.h"
#include "web/api/api_question.h"
#include "web/lists/node_rows.h"

namespace nodepool::web {
namespace {

using launcher::Launcher;

template <class T>
struct Resource {
  std::string name;  // the end of the path, and the key of the list
  std::string summary;
  const FieldTable<T>& fields;
  // Shows every entry in order for as long as `see` wants more; of ordered ones those after `after`.
  std::function<void(const Launcher&, const std::string& after, const std::function<bool(const T&)>& see)>
      for_each;
  bool is_known_without_zookeeper = false;
  // Appends the first entries without a filter; false if there are more. Not set: the filtered way is used.
  std::function<bool(std::string& text, const Launcher&, std::size_t limit, WallTime now)> append_first = {};
};

// An answer ends after the entry that exceeds this: making it blocks the loop.
constexpr std::size_t kMaxBytes = 16 << 20;

// False if there are more than the query's limit, or more than fit.
template <class T>
bool AppendMatching(std::string& text, const Launcher& launcher, const Resource<T>& resource,
                    const Query& query, WallTime now) {
  std::size_t count = 0;
  bool is_complete = true;
  listing::AgedText row;
  resource.for_each(launcher, query.after, [&](const T& entry) {
    if (!IsAskedFor(resource.fields, entry, query.filter)) return true;
    is_complete = count < query.limit && text.size() < kMaxBytes;
    if (!is_complete) return false;
    if (count++ > 0) text += ',';
    row.Clear();
    resource.fields.Append(row, entry);
    row.AppendTo(text, now);
    return true;
  });
  return is_complete;
}

template <class T>
void AppendBody(std::string& text, const Launcher& launcher, const Resource<T>& resource, const Query& query,
                WallTime now) {
  text += "{\"" + resource.name + "\":[";
  bool is_complete = resource.append_first && query.filter.empty() && query.after.empty()
                         ? resource.append_first(text, launcher, query.limit, now)
                         : AppendMatching(text, launcher, resource, query, now);
  text += is_complete ? "],\"is_complete\":true}" : "],\"is_complete\":false}";
}

// Everything that the body depends on.
std::string KeyOf(const Request& request, const Query& query) {
  std::string key = request.path + fmt::format("\n{}\n{}", query.limit, query.after);
  for (const auto& [kind, words] : query.filter) {
    key += fmt::format("\n{}", static_cast<int>(kind));
    for (const std::string& word : words) key += '\r' + word;
  }
  return key;
}

template <class T>
Response Answer(const Launcher& launcher, RecentAnswers& recent, const Resource<T>& resource,
                const Request& request) {
  Expected<Query> query = ReadQuery(request, resource.fields.type().fields);
  if (!query) return ErrorResponse(request, 400, query.error().message());
  if (!resource.is_known_without_zookeeper && !launcher.records().is_complete()) {
    return ErrorResponse(request, 503, "The records are not read yet, or ZooKeeper is away.");
  }
  return recent.Answer(
      request, KeyOf(request, *query), "application/json",
      [&](std::string& body, WallTime now) { AppendBody(body, launcher, resource, *query, now); });
}

template <class T>
Endpoint EndpointOf(const Launcher& launcher, std::shared_ptr<RecentAnswers> recent, Resource<T> resource) {
  std::vector<FieldDoc> fields = resource.fields.type().fields;
  EndpointDoc doc{
      resource.summary,
      ParametersOf(fields),
      {{"application/json", ObjectOf({{resource.name, ListOf(resource.fields.type()), ""},
                                      {"is_complete", Flag(), "false: there are more, in further pages"}})}},
      {400}};
  if (!resource.is_known_without_zookeeper) doc.errors.push_back(503);
  std::string path = "/api/v1/" + resource.name;
  auto answer = [&launcher, recent, resource = std::move(resource)](const Request& request) {
    return Answer(launcher, *recent, resource, request);
  };
  return {"GET", std::move(path), Pure(answer), std::move(doc)};
}

// Calls `see` for the entries of a cache after `after`, by key.
template <class Map, class See>
void ForEachIn(const Map& map, const typename Map::key_type& after, const See& see) {
  for (auto it = map.upper_bound(after); it != map.end() && see(it->second);) ++it;
}

Resource<store::StoredNode> Nodes() {
  auto rows = std::make_shared<NodeRows>(
      [](listing::AgedText& row, const store::StoredNode& node) { NodeFields().Append(row, node); });
  auto append_first = [rows](std::string& text, const Launcher& launcher, std::size_t limit, WallTime now) {
    const store::NodeCache& nodes = launcher.records().nodes;
    std::string_view separator = "";
    auto append = [&](const listing::AgedText& row) {
      text += std::exchange(separator, ",");
      row.AppendTo(text, now);
    };
    bool is_complete = rows->Update(nodes, {limit, kMaxBytes});
    rows->ForEach(append);
    return is_complete;
  };
  return {"nodes",
          "Every node of the cluster, by id.",
          NodeFields(),
          [](const Launcher& launcher, const std::string& after, const auto& see) {
            ForEachIn(launcher.records().nodes.all(), NodeId(after), see);
          },
          false,
          append_first};
}

Resource<launcher::RequestStatus> Requests() {
  return {"requests", "Every request for nodes, by id, and why it waits.", RequestFields(),
          [](const Launcher& launcher, const std::string& after, const auto& see) {
            launcher.ForEachRequest(see, RequestId(after));
          }};
}

Resource<ImageEntry> Images() {
  return {"images", "Every image that ZooKeeper knows, by name.", ImageFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            const store::ImageCache& images = launcher.records().images;
            for (const ImageName& name : images.images()) {
              if (!see(ImageEntry{images, name, launcher.NextBuild(name)})) return;
            }
          }};
}

Resource<store::StoredBuild> Builds() {
  return {"builds", "Every build of an image, by image and id.", BuildFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            ForEachIn(launcher.records().images.builds(), {}, see);
          }};
}

Resource<store::StoredUpload> Uploads() {
  return {"uploads", "Every upload of a build, by image, build, provider and id.", UploadFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            ForEachIn(launcher.records().images.uploads(), {}, see);
          }};
}

Resource<launcher::ProviderStatus> Providers() {
  return {"providers", "The providers of this launcher, by name, with their pools.", ProviderFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            std::vector<launcher::ProviderStatus> providers = launcher.Providers();
            std::ranges::all_of(providers, see);
          },
          true};
}

Resource<PauseEntry> Pauses() {
  return {"pauses", "The providers that operators have paused, by name; also those of other launchers.",
          PauseFields(), [](const Launcher& launcher, const std::string&, const auto& see) {
            std::ranges::all_of(launcher.records().pauses.all(), see);
          }};
}

Resource<JobEntry> Jobs() {
  return {"jobs", "Every rule about jobs, by id, and the nodes that it holds.", JobFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            launcher::Records records = launcher.records();
            for (const auto& [id, rule] : records.jobs.rules()) {
              if (!see(JobEntry{rule, records.nodes, records.jobs})) return;
            }
          }};
}

Resource<ComponentEntry> Components() {
  return {"components", "Every launcher, builder and pool that is registered, by path.", ComponentFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            std::ranges::all_of(launcher.records().components.all(), see);
          }};
}

}  // namespace

std::vector<Endpoint> ApiEndpoints(const Launcher& launcher, std::shared_ptr<RecentAnswers> recent) {
  return {EndpointOf(launcher, recent, Nodes()),      EndpointOf(launcher, recent, Requests()),
          EndpointOf(launcher, recent, Images()),     EndpointOf(launcher, recent, Builds()),
          EndpointOf(launcher, recent, Uploads()),    EndpointOf(launcher, recent, Providers()),
          EndpointOf(launcher, recent, Components()), EndpointOf(launcher, recent, Jobs()),
          EndpointOf(launcher, recent, Pauses())};
}

}  // namespace nodepool::web
