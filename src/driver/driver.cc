#include "driver/driver.h"

#include "base/error.h"
#include "base/text.h"

namespace nodepool::driver {

QuotaInformation PoolConfig::Limit() const {
  Resources all = limits;
  all[resource::kInstances] = max_servers;
  return QuotaInformation::Limit(std::move(all));
}

Task<bool> NodeRequestHandler::CheckReusableNode(const store::StoredNode&) { co_return true; }

Task<> NodeRequestHandler::SetNodeMetadata(Node&) { co_return; }

Task<> Provider::LookAgain() { co_return; }

namespace {

class NoImages : public ImageStore {
 public:
  explicit NoImages(std::shared_ptr<const ProviderConfig> config) : config_(std::move(config)) {}
  const ProviderConfig& config() const override { return *config_; }
  Task<std::string> UploadImage(ImageUploadParameters) override {
    Refuse();
    co_return std::string();
  }
  Task<> DeleteImage(std::string) override {
    Refuse();
    co_return;
  }
  Task<> Stop() override { co_return; }

 private:
  void Refuse() const {
    throw Error(Verdict::kInvalid, "driver " + config_->driver + " does not support image uploads");
  }

  std::shared_ptr<const ProviderConfig> config_;
};

}  // namespace

Task<std::vector<ListedMachine>> OperatorTools::ListMachines() { co_return std::vector<ListedMachine>(); }
Task<std::vector<ListedImage>> OperatorTools::ListImages() { co_return std::vector<ListedImage>(); }
Task<std::vector<std::string>> OperatorTools::FindFaults() { co_return std::vector<std::string>(); }
Task<> OperatorTools::DeleteResources(const NodeId&, const Node&) {
  throw Error(Verdict::kInvalid, "only a launcher deletes nodes of this driver: leave out --now");
  co_return;
}
Task<> OperatorTools::Stop() { co_return; }

std::unique_ptr<ImageStore> Driver::CreateImageStore(DriverEnvironment,
                                                     std::shared_ptr<const ProviderConfig> config) {
  return std::make_unique<NoImages>(std::move(config));
}

std::unique_ptr<OperatorTools> Driver::CreateOperatorTools(ToolsEnvironment,
                                                           std::shared_ptr<const ProviderConfig>) {
  return std::make_unique<OperatorTools>();
}

void Registry::Add(std::unique_ptr<Driver> driver, std::string origin) {
  std::string name(driver->name());
  if (name.empty()) throw Error(Verdict::kInvalid, "a driver of " + origin + " has no name");
  auto [entry, is_new] = drivers_.try_emplace(name);
  if (!is_new) {
    throw Error(Verdict::kInvalid, "driver '" + Excerpt(name) + "' of " + origin +
                                       " exists already: it comes from " + entry->second.origin +
                                       "; rename one of them");
  }
  entry->second = {std::move(driver), std::move(origin)};
}

Driver* Registry::Find(std::string_view name) const {
  auto found = drivers_.find(name);
  return found == drivers_.end() ? nullptr : found->second.driver.get();
}

std::vector<std::string> Registry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : drivers_) names.push_back(name);
  return names;
}

std::map<std::string, std::string> Registry::NamesByFile() const {
  std::map<std::string, std::string> names;
  for (const auto& [name, entry] : drivers_) {
    if (entry.origin != kThisProgram) names.emplace(entry.origin, name);
  }
  return names;
}

}  // namespace nodepool::driver
