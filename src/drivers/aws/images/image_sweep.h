#pragma once

#include <map>
#include <set>
#include <string>

namespace nodepool::drivers::aws {

// The tags of an object, as long as its content is the same.
struct TaggedObject {
  std::string etag;
  std::map<std::string, std::string> tags;
};

// What sweeps for leaked images remember, so that nothing is read twice.
struct ImageSweep {
  std::set<std::string> repaired_tasks;         // import tasks whose results have tags
  std::map<std::string, TaggedObject> objects;  // by key
};

}  // namespace nodepool::drivers::aws
