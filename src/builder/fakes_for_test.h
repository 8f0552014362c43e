#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "builder/files/local_files.h"
#include "process/command.h"

namespace nodepool::builder {

// A host's images-dir and logs, which exist only as names.
class MemoryFiles : public LocalFiles {
 public:
  std::set<std::string> names;  // in images-dir
  std::map<std::string, std::string> logs;
  std::set<std::string> empty;  // formats whose files have no content
  bool is_broken = false;
  std::vector<std::string> temporary;  // left by builds outside of images-dir

  Task<LocalBuilds> Scan(std::string, std::set<ImageName> images) override {
    RequireWorking();
    LocalBuilds builds;
    for (const std::string& name : names) {
      std::optional<LocalName> parsed = ParseLocalName(name);
      if (!parsed || (parsed->is_old && !images.contains(parsed->build.image))) continue;
      auto& formats = builds[parsed->build];
      // Any file that can be opened will do for the simulated cloud.
      if (parsed->rest.find('.') == std::string::npos && parsed->rest != "d")
        formats[parsed->rest] = "/dev/null";
    }
    co_return builds;
  }
  Task<> RemoveBuild(std::string, store::BuildKey build) override {
    RequireWorking();
    std::erase_if(names, [&](const std::string& name) { return name.starts_with(build.str() + "."); });
    co_return;
  }
  Task<> RemoveFormat(std::string, store::BuildKey build, std::string format) override {
    names.erase(build.str() + "." + format);
    co_return;
  }
  Task<Checksums> ReadChecksums(std::string) override {
    Checksums checksums{"md5", "sha256"};
    co_return checksums;
  }
  Task<> WriteChecksums(std::string) override { co_return; }
  Task<ImageCheck> CheckImage(std::string, std::string format) override {
    ImageCheck check;
    if (empty.contains(format)) check.fault = "its " + format + " file is empty";
    co_return check;
  }
  Task<std::uint64_t> AllocatedSize(std::string) override { co_return 4096; }
  Task<std::string> StartLog(std::string, store::BuildKey build, int) override {
    RequireWorking();
    logs[build.str()];
    co_return build.str();
  }
  Task<std::string> ReadLogEnd(std::string path, std::size_t) override { co_return logs[path]; }
  Task<> AppendToLog(std::string path, std::string text) override {
    logs[path] += text;
    co_return;
  }

  Task<std::vector<std::string>> RemoveTemporary(std::string, std::set<std::string>) override {
    co_return std::exchange(temporary, {});
  }

  bool Has(const store::BuildKey& build) const {
    return std::ranges::any_of(names, [&](const auto& name) { return name.starts_with(build.str() + "."); });
  }

 private:
  void RequireWorking() const {
    if (is_broken) throw Error(Verdict::kFail, "images-dir: No space left on device");
  }
};

// The image that disk-image-create makes with these arguments.
inline std::string ImageOf(const std::vector<std::string>& words) {
  auto place = std::ranges::find(words, "-o");
  std::string base = place == words.end() ? std::string() : *(place + 1);
  base.erase(0, base.rfind('/') + 1);
  return base.substr(0, base.rfind('-'));
}

// A fake disk-image-create: takes its time and adds the names of its files; when cancelled, leaves a
// temporary directory behind.
class FakeRunner : public process::Runner {
 public:
  FakeRunner(Loop& loop, MemoryFiles& files) : loop_(loop), files_(files) {}

  Duration build_time = std::chrono::minutes(10);
  // The exit codes of the next programs; called once for each.
  std::function<int()> next_code = [] { return 0; };
  std::vector<std::vector<std::string>> ran;  // the arguments of each program
  std::vector<process::Environment> environments;
  std::string printed;  // by each program, to its log
  int ended_count = 0;  // of cancelled programs
  int running = 0;
  int most_running = 0;

  Task<process::Exit> Run(process::Command command) override {
    ran.push_back(command.argv);
    environments.push_back(command.environment);
    most_running = std::max(most_running, ++running);
    ScopeExit ended([this] { --running; });
    process::Exit exit;
    Duration takes = std::min(build_time, command.timeout);
    exit.is_timed_out = build_time > command.timeout;
    try {
      co_await loop_.SleepFor(takes);
    } catch (...) {
      ++ended_count;
      files_.temporary.push_back("/tmp/dib_build." + std::to_string(ended_count));
      throw;
    }
    exit.code = exit.is_timed_out ? -9 : next_code();
    if (exit.code == 0) AddFiles(command.argv);
    if (command.log_path) {
      files_.logs[*command.log_path] += printed;
    } else {
      exit.output = printed;
    }
    co_return exit;
  }

 private:
  void AddFiles(const std::vector<std::string>& words) {
    auto after = [&](const std::string& option) {
      auto place = std::ranges::find(words, option);
      return place == words.end() ? std::string() : *(place + 1);
    };
    std::string base = after("-o");
    base.erase(0, base.rfind('/') + 1);
    if (base.empty()) return;
    for (const std::string& format : Split(after("-t"), ',')) files_.names.insert(base + "." + format);
    files_.names.insert(base + ".d");
  }

  Loop& loop_;
  MemoryFiles& files_;
};

}  // namespace nodepool::builder
