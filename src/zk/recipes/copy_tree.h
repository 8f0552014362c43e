#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zk/client.h"

// Copies a part of a tree from one ZooKeeper to another. The copy has the same paths, data and next
// sequence numbers; its versions and times start from zero, and its access lists are open to
// everybody. Ephemeral znodes are not copied.
namespace nodepool::zk {

struct TreeContent {
  struct Znode {
    std::string data;
    std::int64_t created = 0;   // children ever created: the next sequence number
    std::int64_t children = 0;  // those of them that are part of the content
    bool operator==(const Znode&) const = default;
  };
  std::string root;
  std::map<std::string, Znode> znodes;  // by path, so a parent comes before its children
  std::vector<std::string> ephemerals;  // paths that are not copied
  std::size_t bytes = 0;                // of paths and data

  // How many children have to be created and deleted in the copy to advance its sequence number to
  // this one's.
  std::int64_t missing_numbers() const;
};

// The znodes at `root` and below. "/" means everything except "/" itself and what the server keeps
// under /zookeeper. Empty when there is nothing. Error(kQuota) beyond `max_bytes`. Changes made
// meanwhile may be seen or not.
Task<TreeContent> ReadTree(Client& client, std::string root, std::size_t max_bytes);

// Creates what ReadTree found, where nothing of it exists. A client cannot set a sequence number,
// so children are created and deleted, a thousand in one transaction, until it is reached. When it
// fails, a part of the copy is left. Error(kConflict): a znode existed already.
Task<> WriteTree(Client& client, const TreeContent& content);

// Deletes what ReadTree found, including ephemeral znodes. Error(kConflict): another client keeps
// creating znodes.
Task<> DeleteTree(Client& client, const TreeContent& content);

// One path at which the copy differs from the original, and why; empty when there is none.
std::string FirstDifference(const TreeContent& original, const TreeContent& copy);

}  // namespace nodepool::zk
