#pragma once

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// The switches of paused providers in the tree (http-actions.md 1).
class ProviderPauses {
 public:
  explicit ProviderPauses(Tree& tree) : tree_(tree) {}

  // Pauses the provider, or replaces the record of one that is paused already.
  Task<> Pause(ProviderName provider, ProviderPause pause);
  // False: it was not paused.
  Task<bool> Unpause(ProviderName provider);

 private:
  Task<> Write(std::string path, std::string data);

  Tree& tree_;
};

}  // namespace nodepool::store
