#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "async/testing/virtual_time.h"
#include "store/store.h"
#include "zk/recipes/lock.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::store {

// A tree, one store on it whose operations can be made to fail, and virtual time.
struct World {
  World() : client(memory.Connect()), faulty(*client), store(time.loop(), faulty, random) {
    time.RunUntil([this] { return client->state() == zk::SessionState::kConnected; });
  }
  ~World() { time.Run(client->Close()); }

  template <class T>
  T Run(Task<T> task) {
    return time.Run(std::move(task));
  }

  // The data of a znode, "<missing>" for none.
  std::string Data(const std::string& path) {
    zk::Result<zk::NodeData> node = memory.tree().Get(path);
    return node ? node->data : "<missing>";
  }
  bool Exists(const std::string& path) { return memory.tree().Exists(path).has_value(); }
  std::vector<std::string> Children(const std::string& path) {
    zk::Result<zk::Children> children = memory.tree().GetChildren(path);
    if (!children) return {};
    std::ranges::sort(children->names);
    return children->names;
  }
  // Written by no client in particular, parents included.
  void Put(const std::string& path, const std::string& data) {
    if (path.rfind('/') != 0 && !Exists(zk::ParentPath(path))) Put(zk::ParentPath(path), "");
    zk::SetOp set{path, data, -1};
    if (memory.tree().Set(set, 0, time.clock().Now())) return;
    zk::CreateOp create{path, data, zk::CreateMode::kPersistent};
    ASSERT_TRUE(memory.tree().Create(create, 0, time.clock().Now())) << path;
  }
  // Removes a znode with all below it, as the CLI's erase does.
  void Erase(const std::string& path) {
    for (const std::string& child : Children(path)) Erase(path + "/" + child);
    zk::DeleteOp remove{path, -1};
    ASSERT_TRUE(memory.tree().Delete(remove, 0)) << path;
  }

  // Everything below /nodepool as text; random parts and times left out.
  std::string Picture(const std::string& path = "/nodepool") {
    std::string name = path.find("__lock__") == path.npos ? path : zk::ParentPath(path) + "/<contender>";
    std::string data = Data(path);
    if (std::size_t time_key = data.find("\"state_time\""); time_key != data.npos) {
      data.erase(time_key, data.find(',', time_key) - time_key);
    }
    std::string picture = name + " " + data + "\n";
    for (const std::string& child : Children(path)) picture += Picture(path + "/" + child);
    return picture;
  }

  testing::VirtualTime time;
  SeededRandom random{1};
  testing::MemoryZk memory{time.loop()};
  std::unique_ptr<zk::Client> client;
  testing::FaultyZk faulty;
  Store store;
};

// The verdict of the error that `call` throws; none when it does not.
template <class Call>
std::optional<Verdict> VerdictThrown(Call call) {
  try {
    call();
  } catch (...) {
    return VerdictOf(std::current_exception());
  }
  return std::nullopt;
}

inline NodeRequest Requested(const std::string& label) {
  NodeRequest request;
  request.state = RequestState::kRequested;
  request.event_id = "e";
  request.node_types.emplace_back(label);
  return request;
}

inline Node InitNode() {
  Node node;
  node.state = NodeState::kInit;
  node.provider = ProviderName("p");
  node.pool = PoolName("main");
  node.type.emplace_back("small");
  return node;
}

inline std::function<Change(NodeRequest&)> ToState(RequestState state) {
  return [state](NodeRequest& request) {
    request.state = state;
    return Change::kWrite;
  };
}

inline std::function<Change(Node&)> ToState(NodeState state) {
  return [state](Node& node) {
    node.state = state;
    return Change::kWrite;
  };
}

}  // namespace nodepool::store
