#pragma once

#include <string>

#include "builder/builder.h"
#include "builder/files/directory_files.h"
#include "daemon/builder_options.h"
#include "daemon/runtime.h"
#include "process/system_runner.h"

namespace nodepool {

// The builder as a part of a daemon, with what it works with.
class BuilderPart : public daemon::Part {
 public:
  // Makes the builder's id in `images_dir` where there is none; Error(kInvalid) when that fails.
  BuilderPart(daemon::Runtime& runtime, zk::Client& client, const daemon::BuilderOptions& options,
              const std::string& images_dir);

  Task<> Start() override { return builder_.Start(); }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    builder_.Reconfigure(std::move(config));
  }
  Task<> Stop() override { return builder_.Stop(); }

 private:
  process::SystemRunner runner_;
  builder::DirectoryFiles files_;
  builder::Builder builder_;
};

}  // namespace nodepool
