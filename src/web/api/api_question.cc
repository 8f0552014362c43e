#include "web/api/api_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

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

}  // namespace nodepool::web
