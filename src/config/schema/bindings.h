#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_from.hpp>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
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

// Settings bound to the members that they are read into:
//
//   const Bindings<StaticNode> settings = {
//       {Setting("name", "Host name or address.").Required(), &StaticNode::name},
//       {Setting("timeout", "Time for the scan of its host keys."), &StaticNode::timeout},
//       {Setting("connection-port", Schema::Port(), "Port for logging in."),
//        &StaticNode::connection, &ConnectionSettings::connection_port},
//   };
//
// Type, unit and default come from the member: the default is the value that a new object has. What the type
// says otherwise, the setting may name: another schema, or bounds. A setting that is absent leaves its member
// as it is, so an object may begin as a copy of defaults that another section has set.
template <class Target>
class Bindings;

// The words that a setting may be, each with its value.
template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

// One setting, and how it is read. Made from the members of an initializer list of Bindings.
template <class Target>
struct Binding {
  // Throws Error(kInvalid) as Section does. Called whether or not the setting is there.
  using Reader = std::function<void(const Section& section, const std::string& key, Target& target)>;
  using DefaultOf = std::function<boost::json::value(const Target& target)>;

  // Into a member of the target or of its base.
  template <class Owner, class Member>
    requires std::derived_from<Target, Owner>
  Binding(Setting declared, Member Owner::*member)
      : setting(WithUsual<Member>(std::move(declared))),
        read([member](const Section& section, const std::string& key, Target& target) {
          if (section.IsGiven(key)) target.*member = MemberType<Member>::Read(section, key);
        }),
        default_of([member](const Target& target) { return MemberType<Member>::Written(target.*member); }) {}

  // Into a member of the target's member `part`.
  template <class Owner, class Part, class PartOwner, class Member>
  Binding(Setting declared, Part Owner::*part, Member PartOwner::*member)
      : Binding(Binding<Part>(std::move(declared), member), part) {}

  // A word, into a member that values of words are assigned to.
  template <class Owner, class Member, class Value>
  Binding(Setting declared, Member Owner::*member, Words<Value> words)
      : setting(WithWords(std::move(declared), words)),
        read([member, words](const Section& section, const std::string& key, Target& target) {
          if (section.IsGiven(key)) target.*member = ReadWord(section, key, words);
        }),
        default_of([member, words](const Target& target) -> boost::json::value {
          for (const auto& [word, value] : words) {
            if (target.*member == value) return boost::json::value(word);
          }
          return nullptr;
        }) {}

  // A mapping, into a member that has its settings.
  template <class Owner, class Part>
  Binding(Setting declared, Part Owner::*part, const Bindings<Part>& settings)
      : setting(WithSchema(std::move(declared), settings.ToSchema())),
        read([part, settings](const Section& section, const std::string& key, Target& target) {
          if (section.IsGiven(key)) settings.Read(section.Sub(key), target.*part);
        }) {}
  // The same into an object that is there only if the mapping is.
  template <class Owner, class Part>
  Binding(Setting declared, std::optional<Part> Owner::*part, const Bindings<Part>& settings)
      : setting(WithSchema(std::move(declared), settings.ToSchema())),
        read([part, settings](const Section& section, const std::string& key, Target& target) {
          if (section.IsGiven(key)) settings.Read(section.Sub(key), (target.*part).emplace());
        }) {}
  // A list of mappings, an object for each.
  template <class Owner, class Part>
  Binding(Setting declared, std::vector<Part> Owner::*parts, const Bindings<Part>& settings)
      : setting(WithSchema(std::move(declared), Schema::List(settings.ToSchema()))),
        read([parts, settings](const Section& section, const std::string& key, Target& target) {
          if (!section.IsGiven(key)) return;
          (target.*parts).clear();
          for (const Section& entry : section.Sections(key))
            settings.Read(entry, (target.*parts).emplace_back());
        }) {}
  // A mapping whose settings go into members of the target itself.
  Binding(Setting declared, const Bindings<Target>& settings)
      : setting(WithSchema(std::move(declared), settings.ToSchema())),
        read([settings](const Section& section, const std::string& key, Target& target) {
          if (section.IsGiven(key)) settings.Read(section.Sub(key), target);
        }) {}

  // Read by code of its own, which finds a default in the declaration.
  template <std::invocable<const Section&, const std::string&, Target&> Code>
  Binding(Setting declared, Code code) : setting(std::move(declared)), read(std::move(code)) {}
  // Not read: without effect, removed, or a list of sections that the caller goes through.
  Binding(Setting declared) : setting(std::move(declared)) {}

  // One of a base, or of a member.
  template <class Base>
    requires(std::derived_from<Target, Base> && !std::same_as<Target, Base>)
  Binding(const Binding<Base>& base) : setting(base.setting), read(base.read), default_of(base.default_of) {}
  template <class Owner, class Part>
  Binding(const Binding<Part>& inner, Part Owner::*part) : setting(inner.setting) {
    if (inner.read)
      read = [part, read = inner.read](const Section& section, const std::string& key, Target& target) {
        read(section, key, target.*part);
      };
    if (inner.default_of)
      default_of = [part, of = inner.default_of](const Target& target) { return of(target.*part); };
  }

  Setting setting;
  Reader read;           // null: not read
  DefaultOf default_of;  // null: the declaration has the default, or none

 private:
  static Setting WithSchema(Setting setting, const Schema& usual) {
    if (setting.schema.kind() == Schema::Kind::kAny) setting.schema = usual;
    return setting;
  }
  template <class Member>
  static Setting WithUsual(Setting setting) {
    bool is_time = std::same_as<Member, Duration> || std::same_as<Member, std::optional<Duration>>;
    if (is_time && setting.unit.empty()) setting.unit = "seconds";
    return WithSchema(std::move(setting), MemberType<Member>::Usual());
  }
  template <class Value>
  static Setting WithWords(Setting setting, const Words<Value>& words) {
    std::vector<std::string> texts;
    for (const auto& [word, value] : words) texts.push_back(word);
    return WithSchema(std::move(setting), Schema::Among(std::move(texts)));
  }
};

// The value that the setting's word stands for.
template <class Value>
Value ReadWord(const Section& section, std::string_view key, const Words<Value>& words) {
  std::string text = section.Text(key);
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.push_back(word);
  }
  throw section.Fail(key, fmt::format("expected one of {}, found {}", Join(known, ", "), Excerpt(text)));
}

template <class Target>
class Bindings {
 public:
  Bindings(std::initializer_list<Binding<Target>> bindings) : bindings_(bindings) {}

  // A copy with more: a setting with the same key is replaced.
  Bindings With(const Bindings& more) const {
    Bindings all = *this;
    for (const Binding<Target>& binding : more.bindings_) all.Put(binding);
    for (const auto& keys : more.required_groups_) all.required_groups_.push_back(keys);
    for (const auto& keys : more.exclusive_groups_) all.exclusive_groups_.push_back(keys);
    return all;
  }
  // The same with those of a member.
  template <class Owner, class Part, class PartBase>
    requires std::derived_from<Part, PartBase>
  Bindings With(Part Owner::*part, const Bindings<PartBase>& more) const {
    Bindings all = *this;
    for (const Binding<PartBase>& binding : more.bindings_)
      all.Put(Binding<Target>(Binding<Part>(binding), part));
    return all;
  }
  // Those of a base, for a derived object.
  template <class Base>
    requires(std::derived_from<Target, Base> && !std::same_as<Target, Base>)
  Bindings(const Bindings<Base>& base)
      : required_groups_(base.required_groups_), exclusive_groups_(base.exclusive_groups_) {
    for (const Binding<Base>& binding : base.bindings_) bindings_.emplace_back(binding);
  }

  // The same with settings of another type, which code of a binding reads, e.g. as defaults of a list's
  // entries.
  template <class Other>
  Bindings Declare(const Bindings<Other>& others) const {
    Bindings all = *this;
    Schema schema = others.ToSchema();
    for (const Setting& setting : schema.settings()) all.Put(Binding<Target>(setting));
    return all;
  }

  // As Schema's functions of these names.
  Bindings RequireOneOf(std::vector<std::string> keys) const {
    Bindings copy = *this;
    copy.required_groups_.push_back(std::move(keys));
    return copy;
  }
  Bindings Exclusive(std::vector<std::string> keys) const {
    Bindings copy = *this;
    copy.exclusive_groups_.push_back(std::move(keys));
    return copy;
  }

  // A closed map of the settings, in their order, with the defaults that a new Target has.
  Schema ToSchema() const {
    const Target fresh{};
    std::vector<Setting> settings;
    for (const Binding<Target>& binding : bindings_) {
      Setting& setting = settings.emplace_back(binding.setting);
      bool has_none = setting.is_required || setting.is_required_by_validator || setting.is_inherited;
      if (binding.default_of && !has_none && setting.default_value.is_null())
        setting.default_value = binding.default_of(fresh);
    }
    Schema schema = Schema::Map(std::move(settings));
    for (const auto& keys : required_groups_) schema = schema.RequireOneOf(keys);
    for (const auto& keys : exclusive_groups_) schema = schema.Exclusive(keys);
    return schema;
  }

  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const Binding<Target>& binding : bindings_) keys.push_back(binding.setting.key);
    return keys;
  }

  // Reads what is set. `section` has the schema of these settings, or one with more. Throws Error(kInvalid)
  // with line, column and place.
  void Read(const Section& section, Target& target) const {
    for (const Binding<Target>& binding : bindings_) {
      if (binding.read) binding.read(section, binding.setting.key, target);
    }
  }

 private:
  template <class Other>
  friend class Bindings;

  void Put(const Binding<Target>& binding) {
    for (Binding<Target>& mine : bindings_) {
      if (mine.setting.key != binding.setting.key) continue;
      mine = binding;
      return;
    }
    bindings_.push_back(binding);
  }

  std::vector<Binding<Target>> bindings_;
  std::vector<std::vector<std::string>> required_groups_;
  std::vector<std::vector<std::string>> exclusive_groups_;
};

}  // namespace nodepool::config
