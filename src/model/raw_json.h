#pragma once

#include <atomic>
#include <boost/json/value.hpp>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace nodepool {

// An optional value of which equal ones share one copy, freed with its last user: for names and amounts that
// thousands of records have in common. It is as large as a pointer, and is used like std::optional<T>, but
// the value cannot be changed in place. May be used by any thread, as std::optional may. T is std::string or
// Resources.
//
// The copies are in the program itself, also those that a loaded driver makes.
template <class T>
class Shared {
  template <class U>
  static constexpr bool kIsValue =
      std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, Shared> &&
      !std::same_as<std::remove_cvref_t<U>, std::optional<T>>;

 public:
  Shared() = default;
  Shared(std::nullopt_t) {}  // NOLINT: as std::optional
  Shared(std::optional<T> value) : entry_(value ? Keep(std::move(value)) : nullptr) {}  // NOLINT: likewise
  template <class U = T>
    requires kIsValue<U>
  Shared(U&& value) : entry_(Keep(T(std::forward<U>(value)))) {}  // NOLINT: likewise
  Shared(const Shared& other) : entry_(other.entry_) {
    if (entry_ != nullptr) entry_->users.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  ~Shared() {
    if (entry_ != nullptr) Drop(entry_);
  }
  Shared& operator=(Shared other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  template <class U = T>
    requires kIsValue<U>
  Shared& operator=(U&& value) {
    return *this = Shared(std::forward<U>(value));
  }

  bool has_value() const { return entry_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  // Require a value.
  const T& operator*() const { return *entry_->value; }
  const T* operator->() const { return &*entry_->value; }
  template <class U>
  T value_or(U&& otherwise) const {
    return optional().value_or(std::forward<U>(otherwise));
  }
  void reset() { *this = Shared(); }

  const std::optional<T>& optional() const {
    static const std::optional<T> none;
    return entry_ == nullptr ? none : entry_->value;
  }
  operator const std::optional<T>&() const { return optional(); }  // NOLINT: it is one

  friend bool operator==(const Shared& a, const Shared& b) { return a.entry_ == b.entry_; }
  template <std::convertible_to<T> U>
    requires(!std::same_as<U, Shared>)
  friend bool operator==(const Shared& a, const U& b) {
    return a.optional() == b;
  }
  friend bool operator==(const Shared& a, const std::optional<T>& b) { return a.optional() == b; }
  friend bool operator==(const Shared& a, std::nullopt_t) { return !a; }

  // A value and how many use it.
  struct Entry {
    const std::optional<T> value;  // not none
    std::atomic<std::uint32_t> users = 1;
  };

 private:
  // The entry of the value, which is not none, with one user more.
  static Entry* Keep(std::optional<T> value);
  static void Drop(Entry* entry);

  Entry* entry_ = nullptr;
};

using SharedText = Shared<std::string>;

// A JSON value of another program: stored as it is written, to the byte, and parsed only on demand.
class RawJson {
 public:
  RawJson() = default;  // null
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, RawJson> && std::constructible_from<boost::json::value, T>)
  RawJson(T&& value)
      : RawJson(Tag(), boost::json::value(std::forward<T>(value))) {}  // NOLINT: as a JSON value is made

  // Requires that `valid` is one JSON value without blanks around it.
  static RawJson OfText(std::string_view valid);

  // Valid JSON in the sense of JsonScanner.
  std::string_view text() const { return text_ ? std::string_view(*text_) : "null"; }
  bool is_null() const { return !text_; }
  // As far as Boost's values can hold it (ParseJsonObject).
  boost::json::value value() const;
  // The number, if it is an integer of 64 bits.
  std::optional<std::int64_t> integer() const;

  // Whether both have the same value, however it is written.
  friend bool operator==(const RawJson& a, const RawJson& b) {
    return a.text_ == b.text_ || a.value() == b.value();
  }

 private:
  struct Tag {};
  RawJson(Tag, const boost::json::value& value);

  SharedText text_;  // none: null
};

// The parts of a record that the fields do not hold, stored so that a rewrite writes them back
// unchanged (D-04).
struct Foreign {
  // A field whose text differs from the one that we write for its value.
  struct Form {
    std::string key;
    std::string theirs;
    std::string ours;
    bool operator==(const Form&) const = default;
  };

  std::string unknown;      // the unknown members, as they are written, joined by ", "
  std::vector<Form> forms;  // `theirs` is written as long as the field's value would be written as `ours`

  // Adds a member, written as in JSON.
  void AddWritten(std::string_view key, std::string_view value);
  void Add(std::string_view key, const RawJson& value);
  bool operator==(const Foreign&) const = default;
};

}  // namespace nodepool
