#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/json_entries.h"
#include "base/small_file.h"

// Reading files of JSON that say who we are for a cloud.
namespace nodepool::driver::cloud::api {

// Error(kInvalid): there is no such text.
std::string Needed(const boost::json::object& object, const char* key);
// `otherwise`: where there is no such text. Error(kInvalid): it is no URL with http or https.
std::string UrlIn(const boost::json::object& object, const char* key, const char* otherwise = "");

// What `read` makes of the object in the file; blocks for the time of reading. Errors name the file.
template <class T>
T ReadCredentialFile(const std::string& path, const std::function<T(const boost::json::object&)>& read) {
  boost::json::value value = ParsedJson(ReadTextFile(path));
  if (!value.is_object()) throw Error(Verdict::kInvalid, path + ": it is no JSON object");
  try {
    return read(value.get_object());
  } catch (const Error& fault) {
    throw fault.In("the credentials file " + path);
  }
}

}  // namespace nodepool::driver::cloud::api
