#include "zk/testing/faulty_zk.h"

#include <algorithm>

namespace nodepool::testing {

using namespace zk;

namespace {

template <class T>
Task<T> Fail(Error error) {
  throw error;
  co_return T();
}

template <>
Task<> Fail<void>(Error error) {
  throw error;
  co_return;
}

template <class T>
Task<T> FailAfter(Task<T> effect, Error error) {
  [[maybe_unused]] T unseen = co_await std::move(effect);
  throw error;
}

Task<> FailAfter(Task<> effect, Error error) {
  co_await std::move(effect);
  throw error;
}

}  // namespace

// Starts the operation within this call, so that the order of the calls stays.
template <class Start>
auto FaultyZk::Apply(const char* name, const std::string& path, bool is_write, Start start)
    -> decltype(start()) {
  using Value = typename decltype(start())::value_type;
  Call call{name, path, is_write};
  if (rule_) call.fault = rule_(call);
  calls_.push_back(call);
  switch (call.fault) {
    case Fault::kNone:
      break;
    case Fault::kBefore:
      return Fail<Value>(error_);
    case Fault::kAfter:
      return FailAfter(start(), error_);
  }
  return start();
}

void FaultyZk::FailWhen(std::function<Fault(const Call&)> rule) { rule_ = std::move(rule); }

void FaultyZk::FailNth(std::size_t n, Fault fault) {
  rule_ = [n, fault, count = std::size_t{0}](const Call&) mutable {
    return count++ == n ? fault : Fault::kNone;
  };
}

void FaultyZk::FailRandomly(double probability, Random& random) {
  rule_ = [probability, &random](const Call&) {
    if (random.Between(0, 1) >= probability) return Fault::kNone;
    return random.Below(2) == 0 ? Fault::kBefore : Fault::kAfter;
  };
}

std::size_t FaultyZk::CountWrites() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(calls_, [](const Call& call) { return call.is_write; }));
}

Task<Result<Created>> FaultyZk::Create(std::string path, std::string data, CreateMode mode) {
  return Apply("Create", path, true, [&] { return inner_.Create(path, std::move(data), mode); });
}

Task<Result<NodeData>> FaultyZk::Get(std::string path) {
  return Apply("Get", path, false, [&] { return inner_.Get(path); });
}

Task<Result<Stat>> FaultyZk::Exists(std::string path) {
  return Apply("Exists", path, false, [&] { return inner_.Exists(path); });
}

Task<Result<Stat>> FaultyZk::Set(std::string path, std::string data, std::int32_t version) {
  return Apply("Set", path, true, [&] { return inner_.Set(path, std::move(data), version); });
}

Task<Result<>> FaultyZk::Delete(std::string path, std::int32_t version) {
  return Apply("Delete", path, true, [&] { return inner_.Delete(path, version); });
}

Task<Result<Children>> FaultyZk::GetChildren(std::string path) {
  return Apply("GetChildren", path, false, [&] { return inner_.GetChildren(path); });
}

Task<MultiResult> FaultyZk::Multi(std::vector<Op> ops) {
  std::string path = ops.empty() ? "" : std::visit([](const auto& op) { return op.path; }, ops.front());
  return Apply("Multi", path, true, [&] { return inner_.Multi(std::move(ops)); });
}

Task<> FaultyZk::Sync(std::string path) {
  return Apply("Sync", path, false, [&] { return inner_.Sync(path); });
}

Task<Result<NodeData>> FaultyZk::GetAndWatch(std::string path, Watcher watcher) {
  return Apply("GetAndWatch", path, false, [&] { return inner_.GetAndWatch(path, std::move(watcher)); });
}

Task<Result<Stat>> FaultyZk::ExistsAndWatch(std::string path, Watcher watcher) {
  return Apply("ExistsAndWatch", path, false,
               [&] { return inner_.ExistsAndWatch(path, std::move(watcher)); });
}

Task<Result<Children>> FaultyZk::GetChildrenAndWatch(std::string path, Watcher watcher) {
  return Apply("GetChildrenAndWatch", path, false,
               [&] { return inner_.GetChildrenAndWatch(path, std::move(watcher)); });
}

Task<Subscription> FaultyZk::AddWatch(std::string path, WatchMode mode, Watcher watcher) {
  return Apply("AddWatch", path, false, [&] { return inner_.AddWatch(path, mode, std::move(watcher)); });
}

}  // namespace nodepool::testing
