#pragma once

#include <memory>
#include <string>

#include "async/task_group.h"
#include "builder/context.h"
#include "builder/files/directory_files.h"
#include "sim/inspector.h"
#include "sim/mortal_zk.h"
#include "store/store.h"

namespace nodepool::sim {

// A process that uploads an image to the clouds again and again and has each upload validated as a builder
// does, before it is ready. While there is trouble, checks fail now and then.
class ImageBuilder {
 public:
  // What all processes share; outlives them.
  struct Environment {
    Loop& loop;
    testing::MemoryZk& zk;
    Random& faults;
    Inspector& inspector;
    Clouds& clouds;
    const Scenario& scenario;
    BlockingPool& blocking_pool;
  };

  ImageBuilder(Environment environment, std::uint64_t seed, std::string name);
  ~ImageBuilder();  // when is_idle(), or after Vanish() and the loop's next run

  // The process dies; its session expires.
  void Vanish(testing::MemoryZk::UnderWay under_way);
  // From now on machines are good, and it ends when each provider has an upload that is ready.
  void CalmDown() { is_calm_ = true; }
  bool is_idle() const { return tasks_.size() == 0; }
  Task<> Close() { return zk_.Close(); }

 private:
  // Runs checks of machines.
  class Checks : public process::Runner {
   public:
    explicit Checks(ImageBuilder& owner) : owner_(owner) {}
    Task<process::Exit> Run(process::Command command) override;

   private:
    ImageBuilder& owner_;
  };

  Task<> Live();
  Task<store::BuildKey> FindBuild();
  Task<> Supply(ProviderName provider);
  Task<bool> HasReady(ProviderName provider);
  Task<> UploadOnce(ProviderName provider);
  Task<> UploadLocked(ProviderName provider, zk::HeldLock lock);
  Task<> RemoveLeft(ProviderName provider);
  Task<> Remove(store::StoredUpload upload);
  Task<> Validate(store::StoredUpload upload);

  Environment environment_;
  SeededRandom random_;
  MortalZk zk_;
  store::Store store_;
  store::Caches caches_;  // never started
  metrics::Metrics metrics_;
  builder::DirectoryFiles files_;
  Checks checks_{*this};
  builder::Context context_;
  std::shared_ptr<Participant> participant_;
  bool is_calm_ = false;
  store::BuildKey build_;
  TaskGroup tasks_;
};

}  // namespace nodepool::sim
