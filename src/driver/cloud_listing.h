#pragma once

#include <map>
#include <string>

namespace nodepool::driver {

// What stands in a cloud, for people to look at.
struct ListedMachine {
  std::string name;
  std::string id;
  std::string address;                          // the public IPv4 one; empty: none
  std::map<std::string, std::string> metadata;  // tells whose it is
};

struct ListedImage {
  std::string name;
  std::string id;
  std::map<std::string, std::string> metadata;
};

}  // namespace nodepool::driver
