#include "model/cell.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using listing::Problem;

const FieldTable<Problem>& ProblemFields() {
  static const FieldTable<Problem> fields({
      {{"id", Text(), "the same for as long as the problem lasts"},
       [](const Problem& p) { return json::value(p.id()); }},
      {{"kind", OneOf(listing::ProblemKinds()), ""}, [](const Problem& p) { return json::value(p.kind); }},
      {{"severity", OneOf(listing::SeverityWords()),
        "bad: something does not work until somebody acts; wait: it may pass by itself"},
       [](const Problem& p) { return json::value(ToString(p.severity)); }},
      {{"since", Number().OrNull(), "in seconds since the epoch, where it is known"},
       [](const Problem& p) { return p.since ? json::value(ToSeconds(*p.since)) : json::value(); }},
      {{"topic", Text().OrNull(), "the resource that it is about, such as providers"},
       [](const Problem& p) { return TextOrNull(std::string(p.subject.topic)); }},
      {{"key", Text().OrNull(), "the name or id of its entry there; null: no single one"},
       [](const Problem& p) { return TextOrNull(p.subject.key); }},
      {{"text", Text(), "a sentence without a full stop"},
       [](const Problem& p) { return json::value(p.text); }},
      {{"remedy", Text(), "what to do, likewise"}, [](const Problem& p) { return json::value(p.remedy); }},
  });
  return fields;
}

}  // namespace nodepool::web
