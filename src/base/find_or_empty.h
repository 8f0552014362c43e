#pragma once

namespace nodepool {

// The entry of `key`, or an empty one.
template <class Map>
const typename Map::mapped_type& FindOrEmpty(const Map& map, const typename Map::key_type& key) {
  static const typename Map::mapped_type empty{};
  auto it = map.find(key);
  return it == map.end() ? empty : it->second;
}

}  // namespace nodepool
