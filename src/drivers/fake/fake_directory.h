#pragma once

#include <map>
#include <set>
#include <string>

#include "drivers/fake/fake_cloud_records.h"

namespace nodepool::drivers {

// Servers and images of a simulated cloud as files, one each, named by their ids.
// Several processes may use the same directory: a file appears and vanishes in one step.
// Every function throws kFail, naming the path, when the file system does not comply.
class FakeDirectory {
 public:
  // Makes the directory when it is not there.
  explicit FakeDirectory(std::string path);

  void Add(const FakeServer& server) const;
  void Add(const FakeImage& image) const;
  void Remove(const std::string& id) const;  // a missing one is fine

  // Makes the maps equal to what the directory holds; reads only what they lack.
  // A server that somebody else made counts as active. A file that is no record is
  // passed over.
  void Refresh(std::map<std::string, FakeServer>& servers, std::map<std::string, FakeImage>& images) const;

 private:
  void Write(const std::string& id, const std::string& text) const;

  std::string path_;
};

}  // namespace nodepool::drivers
