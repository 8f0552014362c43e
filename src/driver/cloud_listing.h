#pragma once

#include <map>
#include <string>

namespace nodepool::driver {

// What exists in a cloud, for listings that operators read.
struct ListedMachine {
  std::string name;
  std::string id;
  std::string address;                          // the public IPv4 one; empty: none
  std::map<std::string, std::string> metadata;  // shows whose it is
};

struct ListedImage {
  std::string name;
  std::string id;
  std::map<std::string, std::string> metadata;
};

}  // namespace nodepool::driver
