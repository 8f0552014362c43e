#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/subscription.h"
#include "zk/client.h"

namespace nodepool::testing {

// Passes everything on to another client, records it, and makes some operations fail: before their
// effect (nothing happened) or after it (it happened and the caller did not learn it). The
// connection itself stays up.
class FaultyZk : public zk::Client {
 public:
  enum class Fault { kNone, kBefore, kAfter };

  struct Call {
    std::string name;  // of the member function, e.g. "Create"
    std::string path;  // Multi: of its first part
    bool is_write;
    Fault fault = Fault::kNone;  // the injected fault
  };

  // `inner` must outlive this.
  explicit FaultyZk(zk::Client& inner) : inner_(inner) {}

  // Each replaces the former rule. Operations are counted from 0, from this call on.
  void FailWhen(std::function<Fault(const Call&)> rule);
  void FailNth(std::size_t n, Fault fault);
  // Each operation fails with `probability`, half of them after the effect.
  // `random` must outlive the rule.
  void FailRandomly(double probability, Random& random);
  void FailNever() { rule_ = nullptr; }
  // What a failed operation throws; at first Error(kRetry, "injected fault").
  void SetError(Error error) { error_ = std::move(error); }

  // From now on caches read what this client writes, as if another had written it.
  void HideOwnWrites() { hides_own_writes_ = true; }

  const std::vector<Call>& calls() const { return calls_; }
  std::size_t CountWrites() const;
  void ClearCalls() { calls_.clear(); }

  Task<zk::Result<zk::Created>> Create(std::string path, std::string data, zk::CreateMode mode) override;
  Task<zk::Result<zk::NodeData>> Get(std::string path) override;
  Task<zk::Result<zk::Stat>> Exists(std::string path) override;
  Task<zk::Result<zk::Stat>> Set(std::string path, std::string data, std::int32_t version) override;
  Task<zk::Result<>> Delete(std::string path, std::int32_t version) override;
  Task<zk::Result<zk::Children>> GetChildren(std::string path) override;
  Task<zk::MultiResult> Multi(std::vector<zk::Op> ops) override;
  Task<> Sync(std::string path) override;
  Task<zk::Result<zk::NodeData>> GetAndWatch(std::string path, zk::Watcher watcher) override;
  Task<zk::Result<zk::Stat>> ExistsAndWatch(std::string path, zk::Watcher watcher) override;
  Task<zk::Result<zk::Children>> GetChildrenAndWatch(std::string path, zk::Watcher watcher) override;
  Task<Subscription> AddWatch(std::string path, zk::WatchMode mode, zk::Watcher watcher) override;
  Subscription OnSession(std::function<void(zk::SessionState)> listener) override {
    return inner_.OnSession(std::move(listener));
  }
  zk::SessionState state() const override { return inner_.state(); }
  zk::Session session() const override { return inner_.session(); }
  const zk::OwnWrites& own_writes() const override { return hides_own_writes_ ? none_ : inner_.own_writes(); }
  Task<> Close() override { return inner_.Close(); }

 private:
  template <class Start>
  auto Apply(const char* name, const std::string& path, bool is_write, Start start) -> decltype(start());

  zk::Client& inner_;
  std::function<Fault(const Call&)> rule_;
  Error error_{Verdict::kRetry, "injected fault"};
  std::vector<Call> calls_;
  bool hides_own_writes_ = false;
  zk::OwnWrites none_;
};

}  // namespace nodepool::testing
