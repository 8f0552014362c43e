#pragma once

#include <map>
#include <string>
#include <vector>

#include "async/task.h"
#include "model/node.h"

namespace nodepool::driver {

// What exists in a cloud, for listings that operators read.
struct ListedMachine {
  std::string name;
  std::string id;
  std::string address;                          // the public IPv4 one; empty: none
  std::map<std::string, std::string> metadata;  // shows whose it is
};

// An image in the cloud.
struct ListedImage {
  std::string name;
  std::string id;
  std::map<std::string, std::string> metadata;
};

// What a command asks of a provider. Made for a few calls, with or without a launcher beside it.
class OperatorTools {
 public:
  virtual ~OperatorTools() = default;
  // Default: there is nothing that the driver can list or check.
  virtual Task<std::vector<ListedMachine>> ListMachines();  // everybody's
  virtual Task<std::vector<ListedImage>> ListImages();      // those made by any Nodepool
  // What is wrong with the provider as it is now, a sentence each: what the configuration names and the cloud
  // does not have. Changes nothing there. An error: it cannot be used at all, for instance because its cloud
  // refuses the login.
  virtual Task<std::vector<std::string>> FindFaults();
  // As Provider::DeleteResources. Default: Error(kInvalid), only launchers can.
  virtual Task<> DeleteResources(const NodeId& id, const Node& node);
  // Ends the work that the calls have begun. Call it after the last one.
  virtual Task<> Stop();
};

}  // namespace nodepool::driver
