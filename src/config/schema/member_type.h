#pragma once

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_from.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "config/schema/section.h"

namespace nodepool::config {

// How members of a type are declared and read (bindings.h). A specialisation has
//   Schema Usual()                              the schema of settings that name none
//   Member Read(const Section&, key)            the value of a setting that is present; throws as Section
//   does boost::json::value Written(const Member&)   the value as a default in the reference; null: it says
//   nothing
template <class Member>
struct MemberType;

template <>
struct MemberType<bool> {
  static Schema Usual() { return Schema::Bool(); }
  static bool Read(const Section& section, std::string_view key) { return section.Bool(key); }
  static boost::json::value Written(bool value) { return value; }
};

template <>
struct MemberType<std::int64_t> {
  static Schema Usual() { return Schema::Int(); }
  static std::int64_t Read(const Section& section, std::string_view key) { return section.Int(key); }
  static boost::json::value Written(std::int64_t value) { return value; }
};

template <>
struct MemberType<std::uint64_t> {
  static Schema Usual() { return Schema::Int(); }
  static std::uint64_t Read(const Section& section, std::string_view key) {
    return static_cast<std::uint64_t>(section.Int(key));
  }
  static boost::json::value Written(std::uint64_t value) { return value; }
};

// Numbers beyond an int's range become its ends.
template <>
struct MemberType<int> {
  static Schema Usual() { return Schema::Int(); }
  static int Read(const Section& section, std::string_view key) {
    constexpr std::int64_t kMax = std::numeric_limits<int>::max();
    return static_cast<int>(std::clamp(section.Int(key), -kMax, kMax));
  }
  static boost::json::value Written(int value) { return value; }
};

// An infinite one is a limit that there is not.
template <>
struct MemberType<double> {
  static Schema Usual() { return Schema::Number(); }
  static double Read(const Section& section, std::string_view key) { return section.Float(key); }
  static boost::json::value Written(double value) {
    return std::isfinite(value) ? boost::json::value(value) : boost::json::value();
  }
};

// In the file seconds, usually whole ones.
template <>
struct MemberType<Duration> {
  static Schema Usual() { return Schema::Int(); }
  static Duration Read(const Section& section, std::string_view key) { return section.Seconds(key); }
  static boost::json::value Written(Duration value) {
    auto whole = std::chrono::duration_cast<std::chrono::seconds>(value);
    if (value == whole) return whole.count();
    return std::chrono::duration<double>(value).count();
  }
};

template <>
struct MemberType<std::string> {
  static Schema Usual() { return Schema::String(); }
  static std::string Read(const Section& section, std::string_view key) { return section.Text(key); }
  static boost::json::value Written(const std::string& value) {
    return value.empty() ? boost::json::value() : boost::json::value(value);
  }
};

template <class Tag>
struct MemberType<StrongId<Tag>> {
  static Schema Usual() { return Schema::String(); }
  static StrongId<Tag> Read(const Section& section, std::string_view key) {
    return StrongId<Tag>(section.Text(key));
  }
  static boost::json::value Written(const StrongId<Tag>& value) {
    return MemberType<std::string>::Written(value.value);
  }
};

// A text counts as a list of one.
template <>
struct MemberType<std::vector<std::string>> {
  static Schema Usual() { return Schema::List(Schema::String()); }
  static std::vector<std::string> Read(const Section& section, std::string_view key) {
    return section.TextList(key);
  }
  static boost::json::value Written(const std::vector<std::string>& value) {
    return value.empty() ? boost::json::value() : boost::json::value_from(value);
  }
};

template <>
struct MemberType<std::map<std::string, std::string>> {
  static Schema Usual() { return Schema::OpenMap(Schema::Any()); }
  static std::map<std::string, std::string> Read(const Section& section, std::string_view key) {
    std::map<std::string, std::string> texts;
    for (auto& [name, text] : section.TextMap(key)) texts[name] = std::move(text);
    return texts;
  }
  static boost::json::value Written(const std::map<std::string, std::string>&) { return nullptr; }
};

template <>
struct MemberType<boost::json::object> {
  static Schema Usual() { return Schema::OpenMap(Schema::Any()); }
  static boost::json::object Read(const Section& section, std::string_view key) {
    return section.Object(key);
  }
  static boost::json::value Written(const boost::json::object&) { return nullptr; }
};

template <>
struct MemberType<boost::json::array> {
  static Schema Usual() { return Schema::List(Schema::Any()); }
  static boost::json::array Read(const Section& section, std::string_view key) { return section.Array(key); }
  static boost::json::value Written(const boost::json::array&) { return nullptr; }
};

template <class Member>
struct MemberType<std::optional<Member>> {
  static Schema Usual() { return MemberType<Member>::Usual(); }
  static std::optional<Member> Read(const Section& section, std::string_view key) {
    return MemberType<Member>::Read(section, key);
  }
  static boost::json::value Written(const std::optional<Member>& value) {
    return value ? MemberType<Member>::Written(*value) : boost::json::value();
  }
};

}  // namespace nodepool::config
