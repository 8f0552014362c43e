#pragma once

#include <map>
#include <string>
#include <vector>

// Machines: files in a folder, in place of a cloud. Everything here blocks, and throws
// std::exception when it fails. Put the calls to your cloud here.
namespace lantern_driver {

struct Machine {
  std::string id;
  double ram = 0;                               // MiB
  std::map<std::string, std::string> metadata;  // as given at its creation
};

class Machines {
 public:
  explicit Machines(std::string folder) : folder_(std::move(folder)) {}

  void Make(const Machine& machine) const;
  void Remove(const std::string& id) const;  // succeeds if it does not exist
  std::vector<Machine> List() const;

 private:
  std::string folder_;
};

}  // namespace lantern_driver
