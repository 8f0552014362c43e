#include "driver/cloud/leaks/external_ids.h"

#include <array>
#include <boost/json/serialize.hpp>

#include "base/text_hash.h"

namespace nodepool::driver::cloud {

std::size_t ExternalIdHash::operator()(const boost::json::value& id) const {
  if (const boost::json::string* text = id.if_string()) return HashText(*text);
  const boost::json::object* fields = id.if_object();
  if (fields == nullptr) return HashText(serialize(id));
  std::size_t sum = 0;
  for (const auto& [key, value] : *fields) {
    const std::array<std::size_t, 2> parts = {HashText(key), (*this)(value)};
    sum += HashText({reinterpret_cast<const char*>(parts.data()), sizeof(parts)});
  }
  return sum;
}

}  // namespace nodepool::driver::cloud
