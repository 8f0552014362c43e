#include "driver/loading/load_drivers.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "driver/plugin.h"

namespace nodepool::driver {

namespace {

constexpr std::string_view kMark = NODEPOOL_DRIVER_API_MARK;
constexpr std::string_view kOurApi = NODEPOOL_DRIVER_API;
constexpr std::size_t kMaxApiLength = 200;

Error Fault(std::string message) { return Error(Verdict::kInvalid, std::move(message)); }

// Whether the bytes are an ELF file up to its last part, which is the table of sections: a copy that was
// cut off lacks it. What another kind of machine wants is left to the linker.
bool IsWholeElf(std::string_view bytes) {
  ElfW(Ehdr) header;
  if (bytes.size() < sizeof(header) || !bytes.starts_with(std::string_view(ELFMAG, SELFMAG))) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != (sizeof(header) == sizeof(Elf64_Ehdr) ? ELFCLASS64 : ELFCLASS32))
    return true;
  std::size_t table = std::size_t{header.e_shentsize} * header.e_shnum;
  return header.e_shoff <= bytes.size() && table <= bytes.size() - header.e_shoff;
}

// The API version for which the file was made, as it says.
std::string ApiOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw Fault("cannot be read");
  if (!IsWholeElf(bytes)) throw Fault("is not a complete ELF file; build or copy it anew");
  std::size_t mark = bytes.find(kMark);
  if (mark == std::string::npos)
    throw Fault("is no Nodepool driver: NODEPOOL_DRIVER is missing in its sources");
  std::string_view rest = std::string_view(bytes).substr(mark + kMark.size(), kMaxApiLength);
  return std::string(rest.substr(0, rest.find('\0')));
}

// The linker's message, with the missing symbol demangled.
std::string Readable(std::string message) {
  std::size_t start = message.find("_Z");
  if (start == std::string::npos) return message;
  std::size_t end = std::min(message.find_first_of(" \t", start), message.size());
  std::string symbol = message.substr(start, end - start);
  int status = 0;
  char* readable = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (status == 0) message.replace(start, symbol.size(), readable);
  std::free(readable);
  return message;
}

std::unique_ptr<Driver> Open(const std::filesystem::path& path) {
  std::string api = ApiOf(path);
  if (api != kOurApi) {
    throw Fault(fmt::format("was built for \"{}\", this program offers \"{}\"; build it anew", Excerpt(api),
                            kOurApi));
  }
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Fault(Readable(dlerror()));
  auto create = reinterpret_cast<decltype(&nodepool_create_driver)>(dlsym(object, "nodepool_create_driver"));
  if (create == nullptr) throw Fault("has no function nodepool_create_driver");
  std::unique_ptr<Driver> driver(create());
  if (!driver) throw Fault("makes no driver");
  return driver;
}

std::vector<std::filesystem::path> ObjectsIn(const std::string& directory) {
  std::vector<std::filesystem::path> objects;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".so") objects.push_back(entry.path());
  }
  std::ranges::sort(objects);
  return objects;
}

}  // namespace

std::vector<std::string> DriverDirectories(std::vector<std::string> named, const char* path_variable) {
  std::vector<std::string> directories = std::move(named);
  if (directories.empty() && path_variable != nullptr) {
    directories = Split(path_variable, ':');
    std::erase(directories, "");
  }
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path installed = program.parent_path().parent_path() / "lib/nodepool/drivers";
  if (!error && std::filesystem::is_directory(installed, error)) directories.push_back(installed);
  return directories;
}

std::vector<std::string> LoadDrivers(const std::vector<std::string>& directories, Registry& drivers) {
  std::vector<std::string> faults;
  for (const std::string& directory : directories) {
    std::vector<std::filesystem::path> objects;
    try {
      objects = ObjectsIn(directory);
    } catch (const std::filesystem::filesystem_error& error) {
      faults.push_back(
          fmt::format("the drivers directory {} cannot be read: {}", directory, error.code().message()));
    }
    for (const std::filesystem::path& object : objects) {
      try {
        drivers.Add(Open(object), object);
      } catch (...) {
        faults.push_back(
            fmt::format("{} is left out: {}", object.string(), MessageOf(std::current_exception())));
      }
    }
  }
  return faults;
}

namespace {

// Handles failures of driver calls that are not expected to fail.
class Guard {
 public:
  explicit Guard(std::string provider) : provider_(std::move(provider)) {}

  // Logs each kind of failure once, not each time.
  void Report(std::string_view call, std::string message) {
    if (message == known_) return;
    logger_.Error("The driver of provider {} failed in {}: {}", provider_, call, message);
    known_ = std::move(message);
  }

  template <class Call>
  void Run(std::string_view name, Call call) {
    try {
      call();
    } catch (...) {
      Report(name, MessageOf(std::current_exception()));
    }
  }

  const std::string& provider() const { return provider_; }

 private:
  std::string provider_;
  std::string known_;
  log::Logger logger_{"nodepool.driver.Drivers"};
};

class GuardedHandler : public NodeRequestHandler {
 public:
  GuardedHandler(std::shared_ptr<Guard> guard, std::unique_ptr<NodeRequestHandler> handler)
      : guard_(std::move(guard)), handler_(std::move(handler)) {}

  void NodeReused(const Node& node) override {
    guard_->Run("NodeReused", [&] { handler_->NodeReused(node); });
  }
  Task<bool> CheckReusableNode(const store::StoredNode& node) override {
    return handler_->CheckReusableNode(node);
  }
  Task<> SetNodeMetadata(Node& node) override { return handler_->SetNodeMetadata(node); }
  Task<> Launch(store::LockedNode& node) override { return handler_->Launch(node); }

 private:
  std::shared_ptr<Guard> guard_;
  std::unique_ptr<NodeRequestHandler> handler_;
};

// Amounts that can be compared: no NaN, and no negative ones where they make no sense.
QuotaInformation Checked(QuotaInformation quota, std::string_view call, bool may_be_negative) {
  for (const auto& [resource, amount] : quota.resources()) {
    if (std::isnan(amount) || (!may_be_negative && amount < 0)) {
      throw Error(Verdict::kFail,
                  fmt::format("{} returned {} {}, which makes no sense", call, amount, resource));
    }
  }
  return quota;
}

class GuardedProvider : public Provider {
 public:
  GuardedProvider(std::shared_ptr<const ProviderConfig> config, std::unique_ptr<Provider> provider)
      : config_(std::move(config)),
        provider_(std::move(provider)),
        guard_(std::make_shared<Guard>(config_->name.str())) {}

  const ProviderConfig& config() const override { return *config_; }
  Task<> Start() override { return provider_->Start(); }
  void Idle() override {
    guard_->Run("Idle", [&] { provider_->Idle(); });
  }
  Task<> Stop() override { return provider_->Stop(); }
  bool launches_nodes() const override { return provider_->launches_nodes(); }

  Readiness LabelReady(const LabelConfig& label) override {
    Readiness readiness = Readiness::kNotReady;
    guard_->Run("LabelReady", [&] { readiness = provider_->LabelReady(label); });
    return readiness;
  }
  QuotaInformation AvailableQuota() override {
    return Checked(provider_->AvailableQuota(), "AvailableQuota", true);
  }
  QuotaInformation UsedByOthers() override {
    return Checked(provider_->UsedByOthers(), "UsedByOthers", false);
  }
  bool waits_for_others() const override { return provider_->waits_for_others(); }
  QuotaInformation QuotaForLabel(const LabelConfig& label) override {
    return Checked(provider_->QuotaForLabel(label), "QuotaForLabel", false);
  }
  Task<> LookAgain() override { return provider_->LookAgain(); }
  void InvalidateQuota() override {
    guard_->Run("InvalidateQuota", [&] { provider_->InvalidateQuota(); });
  }

  std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig> pool,
                                                     const store::StoredRequest& request) override {
    auto handler = provider_->RequestHandler(std::move(pool), request);
    if (!handler)
      throw Error(Verdict::kFail, "the driver of provider " + guard_->provider() + " returned no handler");
    return std::make_unique<GuardedHandler>(guard_, std::move(handler));
  }
  void NodeDeleted(const NodeId& id, const Node& node) override {
    guard_->Run("NodeDeleted", [&] { provider_->NodeDeleted(id, node); });
  }
  Task<> DeleteResources(const NodeId& id, const Node& node) override {
    return provider_->DeleteResources(id, node);
  }
  Task<> CleanupLeakedResources() override { return provider_->CleanupLeakedResources(); }

 private:
  std::shared_ptr<const ProviderConfig> config_;
  std::unique_ptr<Provider> provider_;
  std::shared_ptr<Guard> guard_;
};

Driver& DriverOf(const Registry& drivers, const ProviderConfig& config) {
  if (!config.fault.empty()) throw Error(Verdict::kFail, config.fault);
  Driver* driver = drivers.Find(config.driver);
  if (driver == nullptr) throw Error(Verdict::kInvalid, "there is no driver " + config.driver);
  return *driver;
}

template <class Part>
std::unique_ptr<Part> NotNull(std::unique_ptr<Part> part, const ProviderConfig& config,
                              std::string_view what) {
  if (!part) throw Error(Verdict::kFail, fmt::format("driver {} returned no {}", config.driver, what));
  return part;
}

}  // namespace

std::unique_ptr<Provider> CreateGuarded(const Registry& drivers, ProviderEnvironment environment,
                                        std::shared_ptr<const ProviderConfig> config) {
  auto provider = DriverOf(drivers, *config).CreateProvider(std::move(environment), config);
  provider = NotNull(std::move(provider), *config, "provider");
  return std::make_unique<GuardedProvider>(std::move(config), std::move(provider));
}

std::unique_ptr<ImageStore> CreateImageStore(const Registry& drivers, DriverEnvironment environment,
                                             std::shared_ptr<const ProviderConfig> config) {
  return NotNull(DriverOf(drivers, *config).CreateImageStore(environment, config), *config, "image store");
}

std::unique_ptr<OperatorTools> CreateOperatorTools(const Registry& drivers, ToolsEnvironment environment,
                                                   std::shared_ptr<const ProviderConfig> config) {
  return NotNull(DriverOf(drivers, *config).CreateOperatorTools(environment, config), *config, "tools");
}

}  // namespace nodepool::driver
