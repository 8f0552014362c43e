#include "cli/wait_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/cleanup.h"
#include "base/text.h"
#include "cli/launcher_query.h"

namespace nodepool::cli {
namespace {

constexpr Duration kStep = std::chrono::seconds(1);
// The launchers are asked each time that so many steps have passed, for as long as all of them answer.
constexpr int kStepsPerQuestion = 3;

// Names sort in the order in which requests are served.
std::size_t CountBefore(const store::RequestCache& requests, const RequestId& id) {
  return static_cast<std::size_t>(std::ranges::count_if(requests.all(), [&](const auto& entry) {
    return entry.first < id && entry.second.record.state == RequestState::kRequested;
  }));
}

std::size_t CountReady(const store::NodeCache& nodes, const RequestId& id) {
  return static_cast<std::size_t>(std::ranges::count_if(nodes.OfRequest(id), [&](const NodeId& node) {
    return nodes.Find(node)->record.state == NodeState::kReady;
  }));
}

Task<> RemoveLine(std::ostream& terminal) {
  terminal << "\r\x1b[K" << std::flush;
  co_return;
}

Task<> Rewrite(Context& context, const NodeClaim& claim, std::size_t wanted, std::ostream& terminal) {
  std::string waits;
  bool do_all_answer = true;
  for (int step = 0;; ++step) {
    if (step % kStepsPerQuestion == 1 && do_all_answer) {
      LaunchersAnswers answers = co_await AskAboutRequests(context);
      do_all_answer = answers.has_all;
      auto found = answers.waits.find(claim.request());
      waits = found == answers.waits.end() ? "" : WaitText(found->second);
      std::ranges::replace(waits, '\n', ';');
    }
    std::string line = WaitLine(claim, waits, wanted);
    if (std::optional<std::size_t> width = context.terminal_width(); width && line.size() >= *width) {
      line.resize(*width > 0 ? *width - 1 : 0);
    }
    terminal << "\r\x1b[K" << line << std::flush;
    co_await context.loop.SleepFor(kStep);
  }
}

}  // namespace

std::string WaitLine(const NodeClaim& claim, const std::string& waits, std::size_t wanted) {
  const store::StoredRequest* request = claim.requests().Find(claim.request());
  std::string line = fmt::format("{:.0f} s: ", claim.SecondsSinceBegin());
  if (request == nullptr) return line + "asking";
  if (request->record.state == RequestState::kPending) {
    return line +
           fmt::format("booting, {} of {} ready", CountReady(claim.tree_nodes(), claim.request()), wanted);
  }
  line += fmt::format("waiting, {} before", CountBefore(claim.requests(), claim.request()));
  return waits.empty() ? line : line + "; " + Visible(waits);
}

Task<> ShowWaitLine(Context& context, const NodeClaim& claim, std::size_t wanted, std::ostream& terminal) {
  auto remove = [&terminal] { return RemoveLine(terminal); };
  co_await WithCleanup(Rewrite(context, claim, wanted, terminal), remove);
}

}  // namespace nodepool::cli
