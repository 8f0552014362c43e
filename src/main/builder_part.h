#pragma once

#include <string>

#include "builder/builder.h"
#include "builder/files/local_files.h"
#include "daemon/options.h"
#include "daemon/runtime.h"
#include "process/command.h"

namespace nodepool {

// The builder as a part of a daemon, with its dependencies.
class BuilderPart : public daemon::Part {
 public:
  // Creates the builder's id in `images_dir` if there is none; Error(kInvalid) if that fails.
  BuilderPart(daemon::Runtime& runtime, zk::Client& client, const daemon::BuilderOptions& options,
              const std::string& images_dir);

  Task<> Start() override { return builder_.Start(); }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    builder_.Reconfigure(std::move(config));
  }
  void ConfigurationRejected(const std::optional<RejectedConfiguration>& rejected) override {
    builder_.ConfigurationRejected(rejected);
  }
  Task<> Stop() override { return builder_.Stop(); }

 private:
  process::SystemRunner runner_;
  builder::DirectoryFiles files_;
  builder::Builder builder_;
};

}  // namespace nodepool
