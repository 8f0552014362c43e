#include "model/raw_json.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "base/text.h"
#include "model/json.h"
#include "model/json_scanner.h"
#include "model/node.h"

namespace nodepool {

namespace {

std::size_t HashOf(const std::string& text) { return HashText(text); }

std::uint64_t BitsOf(double amount) { return std::bit_cast<std::uint64_t>(amount); }

std::size_t HashOf(const Resources& amounts) {
  std::size_t hash = 0;
  for (const auto& [name, amount] : amounts) {
    const std::array<std::uint64_t, 3> parts = {hash, HashText(name), BitsOf(amount)};
    hash = HashText({reinterpret_cast<const char*>(parts.data()), sizeof(parts)});
  }
  return hash;
}

bool AreSame(const std::string& a, const std::string& b) { return a == b; }

// Those that are not numbers are the same where their bits are.
bool AreSame(const Resources& a, const Resources& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && BitsOf(one.second) == BitsOf(other.second);
  });
}

// All entries of a type. An entry's last user leaves under the mutex, so that those that are found have one.
template <class Entry>
class Entries {
 public:
  // Never destroyed: other static objects may hold values.
  static Entries& Instance() {
    static Entries& entries = *new Entries;
    return entries;
  }

  template <class Value>
  Entry* Keep(Value value) {
    std::lock_guard lock(mutex_);
    if (auto found = entries_.find(value); found != entries_.end()) {
      (*found)->users.fetch_add(1, std::memory_order_relaxed);
      return found->get();
    }
    return entries_.insert(std::make_unique<Entry>(std::move(value))).first->get();
  }

  void Drop(Entry* entry) {
    std::uint32_t users = entry->users.load(std::memory_order_relaxed);
    while (users > 1) {
      if (entry->users.compare_exchange_weak(users, users - 1, std::memory_order_acq_rel)) return;
    }
    std::lock_guard lock(mutex_);
    if (entry->users.fetch_sub(1, std::memory_order_acq_rel) == 1)
      entries_.erase(entries_.find(entry->value));
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const auto& value) const { return HashOf(*value); }
    std::size_t operator()(const std::unique_ptr<Entry>& entry) const { return HashOf(*entry->value); }
  };
  struct Equal {
    using is_transparent = void;
    static const auto& ValueOf(const auto& value) { return value; }
    static const auto& ValueOf(const std::unique_ptr<Entry>& entry) { return entry->value; }
    bool operator()(const auto& a, const auto& b) const { return AreSame(*ValueOf(a), *ValueOf(b)); }
  };

  std::mutex mutex_;
  std::unordered_set<std::unique_ptr<Entry>, Hash, Equal> entries_;
};

}  // namespace

template <class T>
typename Shared<T>::Entry* Shared<T>::Keep(std::optional<T> value) {
  return Entries<Entry>::Instance().Keep(std::move(value));
}

template <class T>
void Shared<T>::Drop(Entry* entry) {
  Entries<Entry>::Instance().Drop(entry);
}

template class Shared<std::string>;
template class Shared<Resources>;

RawJson::RawJson(Tag, const boost::json::value& value) {
  if (!value.is_null()) text_ = WriteJson(value);
}

RawJson RawJson::OfText(std::string_view valid) {
  RawJson json;
  if (valid != "null") json.text_ = std::string(valid);
  return json;
}

boost::json::value RawJson::value() const { return JsonValueOf(text()); }

std::optional<std::int64_t> RawJson::integer() const {
  std::string_view written = text();
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), number);
  bool is_integer = error == std::errc() && end == written.data() + written.size();
  return is_integer ? std::optional(number) : std::nullopt;
}

void Foreign::AddWritten(std::string_view key, std::string_view value) {
  if (!unknown.empty()) unknown += ", ";
  unknown += key;
  unknown += ": ";
  unknown += value;
}

void Foreign::Add(std::string_view key, const RawJson& value) {
  std::string written;
  AppendJsonText(written, key, JsonStyle::kPython);
  AddWritten(written, value.text());
}

}  // namespace nodepool
