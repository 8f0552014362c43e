#pragma once

#include <map>
#include <set>
#include <string>

#include "drivers/fake/fake_cloud_records.h"

namespace nodepool::drivers {

// Servers and images of a simulated cloud as files named by their ids. Several processes may use the same
// directory: files appear and vanish atomically. Every function throws kFail, naming the path, on a fault of
// the file system.
class FakeDirectory {
 public:
  // Creates the directory if it does not exist.
  explicit FakeDirectory(std::string path);

  void Add(const FakeServer& server) const;
  void Add(const FakeImage& image) const;
  void Remove(const std::string& id) const;  // a missing one is no error

  // Updates the maps to the directory's contents; reads only what they lack. A server made by another process
  // counts as active. A file that is not a record is skipped.
  void Refresh(std::map<std::string, FakeServer>& servers, std::map<std::string, FakeImage>& images) const;

 private:
  void Write(const std::string& id, const std::string& text) const;

  std::string path_;
};

}  // namespace nodepool::drivers
