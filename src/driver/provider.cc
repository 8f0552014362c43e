#include "driver/provider.h"

namespace nodepool::driver {

QuotaInformation PoolConfig::Limit() const {
  Resources all = limits;
  all[resource::kInstances] = max_servers;
  return QuotaInformation::Limit(std::move(all));
}

Task<bool> NodeRequestHandler::CheckReusableNode(const store::StoredNode&) { co_return true; }

Task<> NodeRequestHandler::SetNodeMetadata(Node&) { co_return; }

Task<> Provider::LookAgain() { co_return; }

Task<std::string> Provider::UploadImage(ImageUploadParameters) {
  throw Error(Verdict::kInvalid, "this driver does not support image uploads");
  co_return std::string();
}

Task<> Provider::DeleteImage(std::string) {
  throw Error(Verdict::kInvalid, "this driver does not support image uploads");
  co_return;
}

Task<std::vector<ListedMachine>> Provider::ListMachines() { co_return std::vector<ListedMachine>(); }

Task<std::vector<ListedImage>> Provider::ListImages() { co_return std::vector<ListedImage>(); }

Task<std::vector<std::string>> Provider::FindFaults() { co_return std::vector<std::string>(); }

}  // namespace nodepool::driver
