#include "drivers/aws/compute/terminations.h"

#include <algorithm>

#include "async/attempt.h"
#include "drivers/aws/api/faults.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Duration kCollecting = std::chrono::milliseconds(100);
constexpr std::size_t kMostInOneCall = 100;

bool IsIdCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

}  // namespace

std::vector<std::string> NamedIn(const std::string& message, const std::vector<std::string>& batch) {
  std::vector<std::string> named;
  for (const std::string& id : batch) {
    std::size_t at = message.find(id);
    bool is_whole = at != std::string::npos &&
                    (at + id.size() == message.size() || !IsIdCharacter(message[at + id.size()]));
    if (is_whole) named.push_back(id);
  }
  return named;
}

Task<bool> Terminations::Terminate(std::string id) {
  auto answer = std::make_shared<OneShot<bool>>();
  if (next_.empty()) tasks_.Spawn("terminate instances", SendLater());
  next_[id].push_back(answer);
  bool is_known = co_await answer->Take();
  co_return is_known;
}

Task<> Terminations::SendLater() {
  co_await tasks_.loop().SleepFor(kCollecting);
  Waiting all = std::exchange(next_, {});
  while (!all.empty()) {
    Waiting batch;
    while (!all.empty() && batch.size() < kMostInOneCall) batch.insert(all.extract(all.begin()));
    co_await Send(std::move(batch));
  }
}

void Terminations::Answer(const Waiting& batch, const std::string& id, bool is_known) {
  for (const auto& answer : batch.at(id)) answer->Set(is_known);
}

// One id that EC2 does not accept makes it refuse the whole call: the ones that it names are taken out, and
// where it names none, each half is sent.
Task<> Terminations::Send(Waiting batch) {
  while (!batch.empty()) {
    std::vector<std::string> ids;
    for (const auto& [id, answers] : batch) ids.push_back(id);
    Query query("TerminateInstances");
    query.AddList("InstanceId", ids);
    Outcome<> sent = co_await Attempt(ec2_.Call(std::move(query)));
    if (sent) {
      for (const std::string& id : ids) Answer(batch, id, true);
      co_return;
    }
    const std::string code = CodeOf(sent.error());
    bool is_unknown = code.starts_with("InvalidInstanceID");
    std::vector<std::string> named = NamedIn(sent.error().message(), ids);
    if (named.empty() && (ids.size() == 1 || code.empty())) named = ids;
    for (const std::string& id : named) {
      if (is_unknown) {
        Answer(batch, id, false);
      } else {
        for (const auto& answer : batch.at(id)) answer->Fail(sent.error().exception());
      }
      batch.erase(id);
    }
    if (!named.empty()) continue;
    Waiting half;
    while (half.size() < ids.size() / 2) half.insert(batch.extract(batch.begin()));
    co_await Send(std::move(half));
  }
}

}  // namespace nodepool::drivers::aws
