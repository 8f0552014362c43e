#pragma once

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "net/http/http.h"

// Answers of an OpenStack.
namespace nodepool::testing::openstack {

inline constexpr const char* kProject = "9e6b19cfd71541fb91c6ec097a75cc0a";
inline constexpr const char* kAttached = "os-extended-volumes:volumes_attached";

inline net::HttpResponse Json(boost::json::value value, int status = 200) {
  net::HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = boost::json::serialize(value);
  return response;
}

inline net::HttpResponse Empty(int status) {
  net::HttpResponse response;
  response.status = status;
  return response;
}

// As nova, neutron and glance refuse.
inline net::HttpResponse NovaFault(int status, const std::string& kind, const std::string& message) {
  return Json({{kind, {{"code", status}, {"message", message}}}}, status);
}

// Limits as whole numbers.
inline boost::json::object Whole(const std::map<std::string, double>& limits) {
  boost::json::object absolute;
  for (const auto& [name, limit] : limits) absolute[name] = static_cast<std::int64_t>(limit);
  return absolute;
}

// Decrements the count; true once it has reached zero.
inline bool IsDue(int& count) {
  if (count > 0) --count;
  return count == 0;
}

// Empty: there is no such text.
inline std::string Text(const boost::json::object& object, const char* key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

}  // namespace nodepool::testing::openstack
