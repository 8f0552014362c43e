#pragma once

namespace nodepool::store {

// The entry of `key`, or an empty one.
template <class Map>
const typename Map::mapped_type& FindOrEmpty(const Map& map, const typename Map::key_type& key) {
  static const typename Map::mapped_type kEmpty{};
  auto it = map.find(key);
  return it == map.end() ? kEmpty : it->second;
}

}  // namespace nodepool::store
