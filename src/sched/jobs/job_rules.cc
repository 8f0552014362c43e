#include "sched/jobs/job_rules.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::sched {
namespace {

// Of a compiled expression; repetitions of repetitions end here.
constexpr std::int64_t kPatternMemory = 256 << 10;
constexpr std::size_t kIdDigits = 10;

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The id with which the name ends.
std::optional<NodeId> HistoricId(std::string_view name) {
  std::size_t dash = name.rfind('-');
  if (dash == name.npos) return std::nullopt;
  std::string_view number = name.substr(dash + 1);
  if (!IsNumber(number) || number.size() > kIdDigits) return std::nullopt;
  return NodeId(fmt::format("{:0>10}", number));
}

std::optional<NodeId> OnlyOne(const std::set<NodeId>& candidates, const KnownNodes& nodes) {
  if (candidates.size() == 1) return *candidates.begin();
  auto found = std::ranges::find_if(candidates, nodes.is_in_use);
  if (found == candidates.end()) return std::nullopt;
  bool has_other = std::any_of(std::next(found), candidates.end(), nodes.is_in_use);
  return has_other ? std::nullopt : std::optional(*found);
}

}  // namespace

Expected<JobMatcher> JobMatcher::Make(std::string name) {
  JobMatcher matcher;
  if (name.size() > kMaxJobName) return Unexpected(Verdict::kInvalid, "it is longer than 255 bytes");
  if (name.starts_with('^')) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kPatternMemory);
    auto pattern = std::make_shared<const re2::RE2>(name, options);
    if (!pattern->ok()) {
      return Unexpected(Verdict::kInvalid, fmt::format("it begins with ^ but is no regular expression: {}",
                                                       Excerpt(pattern->error(), 200)));
    }
    matcher.pattern_ = std::move(pattern);
  }
  matcher.name_ = std::move(name);
  return matcher;
}

bool JobMatcher::Matches(const std::string& job) const {
  if (!is_pattern()) return job == name_;
  return job.size() <= kMaxJobName && re2::RE2::PartialMatch(job, *pattern_);
}

std::optional<Error> JobRules::Set(const JobId& id, const JobRule& rule) {
  Erase(id);
  Expected<JobMatcher> matcher = JobMatcher::Make(rule.name);
  if (!matcher) return matcher.error();
  if (matcher->is_pattern()) {
    patterns_.insert(id);
  } else {
    exact_[rule.name].insert(id);
  }
  std::int64_t limit = std::max<std::int64_t>(0, rule.hold_on_failure.value_or(0));
  entries_.emplace(id, Entry{id, std::move(*matcher), limit});
  return std::nullopt;
}

void JobRules::Erase(const JobId& id) {
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  patterns_.erase(id);
  if (auto named = exact_.find(entry->second.matcher.name()); named != exact_.end()) {
    named->second.erase(id);
    if (named->second.empty()) exact_.erase(named);
  }
  entries_.erase(entry);
}

const JobRules::Entry* JobRules::Find(const std::string& job) const {
  const Entry* found = nullptr;
  if (auto named = exact_.find(job); named != exact_.end()) found = &entries_.at(*named->second.begin());
  for (const JobId& id : patterns_) {
    if (found != nullptr && found->id < id) break;
    const Entry& entry = entries_.at(id);
    if (entry.matcher.Matches(job)) return &entry;
  }
  return found;
}

std::size_t CountHolds(const JobMatcher& rule, const NodesByJob& held, const NodesByJob& wished) {
  std::set<NodeId> nodes;
  for (const NodesByJob* by_job : {&held, &wished}) {
    if (!rule.is_pattern()) {
      auto of_job = by_job->find(rule.name());
      if (of_job != by_job->end()) nodes.insert(of_job->second.begin(), of_job->second.end());
      continue;
    }
    for (const auto& [job, of_job] : *by_job) {
      if (rule.Matches(job)) nodes.insert(of_job.begin(), of_job.end());
    }
  }
  return nodes.size();
}

std::optional<NodeId> FindNodeMeant(const std::string& name, const KnownNodes& nodes) {
  NodeId id(name.starts_with("np") ? name.substr(2) : name);
  if (id.value.size() == kIdDigits && IsNumber(id.value) && nodes.exists(id)) return id;
  const std::set<NodeId>& named = nodes.named(name);
  if (!named.empty()) return OnlyOne(named, nodes);
  std::optional<NodeId> historic = HistoricId(name.substr(0, name.find('.')));
  return historic && nodes.exists(*historic) ? historic : std::nullopt;
}

}  // namespace nodepool::sched
