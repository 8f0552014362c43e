#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "builder/builder.h"
#include "builder/files/local_files.h"
#include "drivers/fake/fake_driver.h"
#include "process/command.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::builder {

using store::BuildKey;

// A host's images-dir and logs, which exist only as names.
class MemoryFiles : public LocalFiles {
 public:
  std::set<std::string> names;  // in images-dir
  std::map<std::string, std::string> logs;
  std::set<std::string> empty;  // formats whose files have no content
  bool is_broken = false;
  bool vanish_when_measured = false;
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
  Task<std::uint64_t> AllocatedSize(std::string) override {
    if (std::exchange(vanish_when_measured, false)) names.clear();
    if (names.empty()) throw Error(Verdict::kFail, "debian.qcow2: No such file or directory");
    co_return 4096;
  }
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

// Builders on an in-process ZooKeeper and simulated clouds, in virtual time. Each is a
// host of its own.
class BuilderTest : public ::testing::Test {
 protected:
  struct Host {
    explicit Host(Loop& loop) : runner(loop, files) {}
    std::string name;
    MemoryFiles files;
    FakeRunner runner;
    std::unique_ptr<zk::Client> client;
    std::unique_ptr<testing::FaultyZk> recorder;  // the builder's connection
    std::unique_ptr<Builder> builder;
  };

  void SetUp() override {
    auto driver = std::make_unique<drivers::FakeDriver>();
    clouds_ = &driver->clouds();
    drivers_.Add(std::move(driver));
    client_ = zk_.Connect();
    store_ = std::make_unique<store::Store>(time_.loop(), *client_, random_);
    Load();
  }
  void TearDown() override {
    for (auto& host : hosts_) Stop(*host);
    hosts_.clear();
    time_.Run(client_->Close());
  }

  // --- Configuration: entries in YAML; replaced as a whole, loaded by Load() -----------------
  std::string settings_;  // more of the top level, each on a line of its own
  std::string diskimages_ = "[{name: debian}]";
  std::string providers_ = Provider("cloud", "{name: debian}");

  static std::string Provider(const std::string& name, const std::string& images,
                              const std::string& more = "") {
    return "- {name: " + name + ", driver: fake, cloud: simulated, diskimages: [" + images + "], pools: []" +
           (more.empty() ? "" : ", " + more) + "}\n";
  }
  void Load() {
    std::string path = (std::filesystem::temp_directory_path() / "nodepool-builder-XXXXXX").string();
    ::close(::mkstemp(path.data()));
    std::ofstream(path) << "images-dir: /images\n"
                        << settings_ << "diskimages: " << diskimages_ << "\nproviders:\n"
                        << providers_;
    auto loaded = driver::LoadConfig(path, std::nullopt, drivers_, nullptr);
    std::filesystem::remove(path);
    ASSERT_TRUE(loaded) << loaded.error().message();
    config_ = *loaded;
    for (auto& host : hosts_) {
      if (host->builder) host->builder->Reconfigure(config_);
    }
  }

  // --- Builders -------------------------------------------------------------------------------
  Host& Start(std::string name = "nb01") {
    hosts_.push_back(std::make_unique<Host>(time_.loop()));
    hosts_.back()->name = std::move(name);
    Restart(*hosts_.back());
    return *hosts_.back();
  }
  void Restart(Host& host) {
    host.client = zk_.Connect();
    host.recorder = std::make_unique<testing::FaultyZk>(*host.client);
    Builder::Options options;
    options.identity = {host.name, host.name + ".example.org", "id of " + host.name, "/helpers"};
    options.workers = workers_;
    options.intervals = intervals_;
    options.finishes_work = finishes_work_;
    host.builder = std::make_unique<Builder>(time_.loop(), random_, pool_, metrics_, *host.recorder, drivers_,
                                             host.runner, host.files, config_, std::move(options));
    time_.Run(host.builder->Start());
  }
  void Stop(Host& host) {
    if (!host.builder) return;
    host.recorder->FailNever();
    time_.Run(host.builder->Stop());
    time_.Run(host.client->Close());
    time_.Run(host.builder->Stop());
    host.builder.reset();
    host.recorder.reset();
  }
  // As others see it: the process is gone and its session has ended.
  void Kill(Host& host) {
    zk_.Disconnect(*host.client);
    zk_.ExpireSession(*host.client);
    Stop(host);
  }

  // --- Records ----------------------------------------------------------------------------------
  std::vector<store::StoredBuild> Builds(const std::string& image = "debian") {
    return time_.Run(store_->images.ListBuilds(ImageName(image)));
  }
  std::vector<store::StoredBuild> Builds(ImageState state, const std::string& image = "debian") {
    std::vector<store::StoredBuild> builds = Builds(image);
    std::erase_if(builds, [&](const auto& build) { return build.record.state != state; });
    std::ranges::sort(builds, {}, [](const auto& build) { return build.record.state_time; });
    return builds;
  }
  std::vector<store::StoredUpload> Uploads(const std::string& image = "debian",
                                           const std::string& provider = "cloud") {
    std::vector<store::StoredUpload> uploads;
    for (const store::StoredBuild& build : Builds(image)) {
      auto of_build = time_.Run(store_->images.ListUploads(build.id, ProviderName(provider)));
      uploads.insert(uploads.end(), of_build.begin(), of_build.end());
    }
    return uploads;
  }
  std::vector<store::StoredUpload> Uploads(ImageState state, const std::string& provider = "cloud") {
    std::vector<store::StoredUpload> uploads = Uploads("debian", provider);
    std::erase_if(uploads, [&](const auto& upload) { return upload.record.state != state; });
    return uploads;
  }
  // The images that the host built, in order.
  static std::vector<std::string> Built(const Host& host) {
    std::vector<std::string> images;
    for (const auto& words : host.runner.ran) images.push_back(ImageOf(words));
    return images;
  }
  bool Exists(const std::string& path) { return zk_.tree().Exists(path).has_value(); }
  drivers::FakeCloud& cloud(const std::string& name = "cloud") { return *clouds_->Find(ProviderName(name)); }
  // Changes the cloud without notice to the builder.
  void ChangeCloud(std::function<void(drivers::FakeSimulation&)> change, const std::string& name = "cloud") {
    drivers::FakeSimulation settings = cloud(name).settings();
    change(settings);
    cloud(name).Configure(std::move(settings));
  }

  // --- Time ---------------------------------------------------------------------------------------
  bool Await(std::function<bool()> condition, Duration limit = std::chrono::hours(2)) {
    SteadyTime end = time_.loop().SteadyNow() + limit;
    while (!condition()) {
      if (time_.loop().SteadyNow() >= end) return false;
      time_.Advance(std::chrono::seconds(5));
    }
    return true;
  }
  bool AwaitUploads(std::size_t count, Duration limit = std::chrono::hours(2)) {
    return Await([&] { return Uploads(ImageState::kReady).size() == count; }, limit);
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  BlockingPool pool_{0};
  metrics::Metrics metrics_;
  testing::MemoryZk zk_{time_.loop()};
  driver::Registry drivers_;
  drivers::FakeClouds* clouds_ = nullptr;
  std::shared_ptr<const driver::LoadedConfig> config_;
  WorkerCounts workers_;
  Intervals intervals_;
  bool finishes_work_ = false;
  std::unique_ptr<zk::Client> client_;
  std::unique_ptr<store::Store> store_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace nodepool::builder
