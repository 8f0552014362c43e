#include "web/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "web/api/api_fields.h"
#include "web/lists/row_stream.h"

namespace nodepool::web {

namespace {

constexpr const char* kLimit = "limit";
constexpr const char* kAfter = "after";

const FieldDoc* Find(const std::vector<FieldDoc>& fields, listing::Kind kind) {
  auto found = std::ranges::find(fields, kind, &FieldDoc::asked_as);
  return found == fields.end() ? nullptr : &*found;
}

bool AreOrdered(const std::vector<FieldDoc>& fields) {
  return std::ranges::any_of(fields, &FieldDoc::is_order);
}

// The field that a parameter filters by; null: none.
const FieldDoc* FieldOf(const std::vector<FieldDoc>& fields, const std::string& parameter) {
  auto named =
      std::ranges::find(listing::kFilters, parameter, [](const auto& filter) { return filter.second; });
  return named == std::end(listing::kFilters) ? nullptr : Find(fields, named->first);
}

// The possible values of a field, or of a list's entries.
const std::vector<std::string_view>& WordsOf(const JsonType& type) {
  return type.entries ? WordsOf(*type.entries) : type.words;
}

std::string Unknown(const std::string& parameter, const std::vector<FieldDoc>& fields) {
  std::vector<std::string> names;
  for (const ParameterDoc& known : ParametersOf(fields)) names.push_back(known.name);
  return fmt::format("There is no parameter \"{}\" here; there is {}.", Excerpt(parameter),
                     Join(names, ", "));
}

}  // namespace

std::vector<ParameterDoc> ParametersOf(const std::vector<FieldDoc>& fields, std::size_t max) {
  std::vector<ParameterDoc> parameters;
  for (const auto& [kind, name] : listing::kFilters) {
    const FieldDoc* field = Find(fields, kind);
    if (field == nullptr) continue;
    parameters.push_back({std::string(name), fmt::format("only entries with this in `{}`", field->key),
                          OneOf(WordsOf(field->type)), true});
  }
  for (const FieldDoc& field : fields) {
    if (!field.is_order) continue;
    parameters.push_back(
        {kAfter, fmt::format("only entries after the one with this `{}`: the next page", field.key), Text()});
  }
  parameters.push_back({kLimit, fmt::format("at most so many, and at most {}", max), Whole()});
  return parameters;
}

Expected<Query> ReadQuery(const Request& request, const std::vector<FieldDoc>& fields) {
  Query query;
  for (const auto& [name, value] : request.query) {
    const FieldDoc* field = FieldOf(fields, name);
    bool is_after = name == kAfter && AreOrdered(fields);
    if (field == nullptr && !is_after && name != kLimit)
      return Unexpected(Verdict::kInvalid, Unknown(name, fields));
    if (value.empty()) continue;
    if (is_after) {
      query.after = value;
      continue;
    }
    if (field == nullptr) {
      const char* end = value.data() + value.size();
      auto [rest, error] = std::from_chars(value.data(), end, query.limit);
      if (error != std::errc() || rest != end) return Unexpected(Verdict::kInvalid, "limit is a number.");
      query.limit = std::min(query.limit, Query::kMaxEntries);
      continue;
    }
    const std::vector<std::string_view>& words = WordsOf(field->type);
    if (!words.empty() && std::ranges::find(words, value) == words.end()) {
      return Unexpected(Verdict::kInvalid,
                        fmt::format("{} is {}, not {}.", name, fmt::join(words, ", "), Excerpt(value)));
    }
    query.filter[field->asked_as].insert(value);
  }
  return query;
}

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
  std::function<Task<bool>(std::string& text, const Launcher&, std::size_t limit, WallTime now, Pace&)>
      append_first = {};

  // Throws Error(kRetry) unless all entries are known.
  void RequireComplete(const Launcher& launcher) const {
    if (!is_known_without_zookeeper) launcher.records().RequireSynced();
  }
};

// An answer ends after the entry that exceeds this.
constexpr std::size_t kMaxBytes = 16 << 20;
constexpr std::size_t kMaxEntry = 1 << 20;  // a record is not larger

// A text is copied whenever it grows, so a large one gets all the space that it may take.
void MakeSpaceForEntry(std::string& text) {
  if (text.size() > kMaxEntry) text.reserve(kMaxBytes + kMaxEntry);
}

// Appends entries after `after`, and moves it, until the answer is complete, a limit is reached, or `pace` is
// due.
template <class T>
class Matching {
 public:
  Matching(std::string& text, const Resource<T>& resource, const Query& query, WallTime now)
      : text_(text), resource_(resource), query_(query), now_(now), after_(query.after) {}

  enum class End { kComplete, kLimit, kPause };
  End AppendSome(const Launcher& launcher, Pace& pace) {
    End end = End::kComplete;
    resource_.for_each(launcher, after_, [&](const T& entry) {
      std::size_t former = text_.size();
      if (IsAskedFor(resource_.fields, entry, query_.filter)) {
        if (count_ == query_.limit || text_.size() >= kMaxBytes) {
          end = End::kLimit;
          return false;
        }
        Append(entry);
      }
      if (!pace.is_due(text_.size() - former)) return true;
      std::optional<std::string> place = resource_.fields.OrderOf(entry);
      if (!place) return true;
      after_ = *place;
      end = End::kPause;
      return false;
    });
    return end;
  }

 private:
  void Append(const T& entry) {
    if (count_++ > 0) text_ += ',';
    row_.Clear();
    resource_.fields.Append(row_, entry);
    MakeSpaceForEntry(text_);
    row_.AppendTo(text_, now_);
  }

  std::string& text_;
  const Resource<T>& resource_;
  const Query& query_;
  WallTime now_;
  std::string after_;
  std::size_t count_ = 0;
  listing::AgedText row_;
};

// False if there are more than the query's limit, or more than fit.
template <class T>
Task<bool> AppendMatching(std::string& text, const Launcher& launcher, const Resource<T>& resource,
                          const Query& query, WallTime now, Pace& pace) {
  using End = typename Matching<T>::End;
  Matching<T> matching(text, resource, query, now);
  End end = End::kPause;
  while ((end = matching.AppendSome(launcher, pace)) == End::kPause) {
    co_await pace.Pause();
    resource.RequireComplete(launcher);
  }
  co_return end == End::kComplete;
}

template <class T>
Task<> AppendBody(std::string& text, const Launcher& launcher, const Resource<T>& resource,
                  const Query& query, WallTime now, Pace& pace) {
  text += "{\"" + resource.name + "\":[";
  bool is_complete = false;
  if (resource.append_first && query.filter.empty() && query.after.empty()) {
    is_complete = co_await resource.append_first(text, launcher, query.limit, now, pace);
    resource.RequireComplete(launcher);
  } else {
    is_complete = co_await AppendMatching(text, launcher, resource, query, now, pace);
  }
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
Task<Response> AnswerResource(const Launcher& launcher, std::shared_ptr<RecentAnswers> recent,
                              std::shared_ptr<const Resource<T>> resource, Request request) {
  Expected<Query> query = ReadQuery(request, resource->fields.type().fields);
  if (!query) co_return ErrorResponse(request, 400, query.error().message());
  if (!resource->is_known_without_zookeeper && !launcher.records().synced())
    co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  auto make = [&](std::string& body, WallTime now, Pace& pace) {
    return AppendBody(body, launcher, *resource, *query, now, pace);
  };
  std::string key = KeyOf(request, *query);
  co_return co_await recent->Answer(std::move(request), std::move(key), "application/json", make);
}

template <class T>
Endpoint EndpointOf(const Launcher& launcher, std::shared_ptr<RecentAnswers> recent, Resource<T> resource) {
  std::vector<FieldDoc> fields = resource.fields.type().fields;
  EndpointDoc doc{resource.summary,
                  ParametersOf(fields),
                  {{"application/json",
                    ObjectOf({{resource.name, ListOf(resource.fields.type()), "the entries that match"},
                              {"is_complete", Flag(), "false: there are more, in further pages"}})}},
                  {400}};
  if (!resource.is_known_without_zookeeper) doc.errors.push_back(503);
  std::string path = "/api/v1/" + resource.name;
  auto shared = std::make_shared<const Resource<T>>(std::move(resource));
  auto answer = [&launcher, recent, shared](Request request) {
    return AnswerResource(launcher, recent, shared, std::move(request));
  };
  return {"GET", std::move(path), answer, std::move(doc)};
}

// Calls `see` for the entries of a cache after `after`, by key.
template <class Map, class See>
void ForEachIn(const Map& map, const typename Map::key_type& after, const See& see) {
  for (auto it = map.upper_bound(after); it != map.end() && see(it->second);) ++it;
}

Task<bool> AppendRows(std::string& text, std::shared_ptr<NodeRows> rows, const store::NodeCache& nodes,
                      std::size_t max_rows, WallTime now, Pace& pace) {
  NodeRows::Limits limits{max_rows, kMaxBytes};
  bool is_complete = co_await rows->Update(nodes, limits, pace);
  std::string_view separator = "";
  auto append = [&](const listing::AgedText& row) {
    text += std::exchange(separator, ",");
    MakeSpaceForEntry(text);
    row.AppendTo(text, now);
  };
  co_await rows->ForEach(append, pace);
  co_return is_complete;
}

Resource<store::StoredNode> Nodes() {
  auto rows = std::make_shared<NodeRows>(
      [](listing::AgedText& row, const store::StoredNode& node) { NodeFields().Append(row, node); });
  auto append_first = [rows](std::string& text, const Launcher& launcher, std::size_t limit, WallTime now,
                             Pace& pace) {
    return AppendRows(text, rows, launcher.records().nodes, limit, now, pace);
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
  return {"images", "Every image that is configured or has records, by name.", ImageFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            std::set<ImageName> names = launcher.records().images.images();
            for (const auto& [name, settings] : launcher.config()->common.diskimages) names.insert(name);
            for (const ImageName& name : names) {
              if (!see(EntryOf(launcher, name))) return;
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

Resource<launcher::ReportedReason> Reasons() {
  return {"reasons",
          "What decides that requests wait, as this launcher alone says, by id; other launchers ask for it.",
          ReasonFields(), [](const Launcher& launcher, const std::string& after, const auto& see) {
            launcher.ForEachReason(see, RequestId(after));
          }};
}

Resource<launcher::ProviderStatus> Providers() {
  return {"providers", "The providers of all launchers, by name, with their pools.", ProviderFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            std::vector<launcher::ProviderStatus> providers = launcher.ClusterProviders();
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

Resource<BreakerEntry> Breakers() {
  return {"breakers",
          "The breakers that are open, by provider, pool and label; also those of other launchers.",
          BreakerFields(), [](const Launcher& launcher, const std::string&, const auto& see) {
            std::ranges::all_of(launcher.records().breakers.all(),
                                [&](const auto& entry) { return see(BreakerEntry(entry)); });
          }};
}

Resource<JobEntry> Jobs() {
  return {"jobs", "Every rule about jobs, by id, and the nodes that it holds.", JobFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            const store::Caches& records = launcher.records();
            for (const auto& [id, rule] : records.jobs.rules()) {
              if (!see(JobEntry{rule, records.nodes, records.jobs})) return;
            }
          }};
}

Resource<listing::RunnerSetRow> Runners() {
  return {"runners", "Every set of runners, by service and name, and what is wrong with it.", RunnerFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            std::ranges::all_of(listing::RunnerSets(launcher.records().runners), see);
          }};
}

Resource<listing::RunnerJobRow> RunnerJobs() {
  return {"runner_jobs",
          "Jobs of the sets of runners: those that wait, as far as services name them, the runners, and what "
          "was lost.",
          RunnerJobFields(), [](const Launcher& launcher, const std::string&, const auto& see) {
            std::ranges::all_of(RunnerJobsOf(launcher), see);
          }};
}

Resource<listing::Problem> Problems() {
  return {"problems", "What operators should check, the most urgent first, with its remedy.", ProblemFields(),
          [](const Launcher& launcher, const std::string&, const auto& see) {
            listing::Problems problems = launcher.Problems();
            std::ranges::all_of(problems, see);
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
          EndpointOf(launcher, recent, Pauses()),     EndpointOf(launcher, recent, Breakers()),
          EndpointOf(launcher, recent, Problems()),   EndpointOf(launcher, recent, Reasons()),
          EndpointOf(launcher, recent, Runners()),    EndpointOf(launcher, recent, RunnerJobs())};
}

}  // namespace nodepool::web
