#include "model/job_event.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/job.h"
#include "model/json.h"

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::string_view kBlanks = " \t\r\n\f\v";

Error Invalid(std::string message) { return {Verdict::kInvalid, std::move(message)}; }

Expected<JobEvent::Topic> TopicOf(std::string_view word) {
  if (word == "onStarted") return JobEvent::Topic::kStarted;
  if (word == "onCompleted") return JobEvent::Topic::kCompleted;
  if (word == "onFinalized") return JobEvent::Topic::kFinalized;
  return std::unexpected(Invalid(fmt::format(
      "\"{}\" is not a topic; the topics are onStarted, onCompleted, onFinalized", Excerpt(word, 40))));
}

// A missing member and null are the same.
Expected<std::optional<std::string>> Text(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return std::optional<std::string>();
  if (!value->is_string() || value->get_string().size() > kMaxJobName) {
    return std::unexpected(
        Invalid(fmt::format("\"{}\" is not a text of at most {} bytes", key, kMaxJobName)));
  }
  return std::optional(std::string(value->get_string()));
}

Expected<json::object> Parse(std::string_view text) {
  if (text.size() > kMaxJobMessageBytes) return std::unexpected(Invalid("it is too long"));
  return ParseJsonObject(text);
}

Expected<JobEvent> EventOf(JobEvent::Topic topic, const json::object& object) {
  JobEvent event;
  event.topic = topic;
  Expected<std::optional<std::string>> name = Text(object, "name");
  if (!name) return std::unexpected(name.error());
  if (name->value_or("").empty()) return std::unexpected(Invalid("there is no \"name\""));
  event.job = **name;
  const json::value* build = object.if_contains("build");
  if (build == nullptr || !build->is_object())
    return std::unexpected(Invalid("there is no object \"build\""));
  Expected<std::optional<std::string>> node_name = Text(build->get_object(), "node_name");
  if (!node_name) return std::unexpected(node_name.error());
  event.node_name = node_name->value_or("");
  Expected<std::optional<std::string>> status = Text(build->get_object(), "status");
  if (!status) return std::unexpected(status.error());
  event.status = std::move(*status);
  return event;
}

}  // namespace

Expected<JobEvent> ParseJobMessage(std::string_view message) {
  std::size_t end = message.find_first_of(kBlanks);
  Expected<JobEvent::Topic> topic = TopicOf(message.substr(0, end));
  if (!topic) return std::unexpected(topic.error());
  std::size_t begin = end == message.npos ? end : message.find_first_not_of(kBlanks, end);
  if (begin == message.npos) return std::unexpected(Invalid("there is no JSON after the topic"));
  Expected<json::object> object = Parse(message.substr(begin));
  if (!object) return std::unexpected(object.error());
  return EventOf(*topic, *object);
}

Expected<JobEvent> ParseJobEvent(std::string_view text) {
  Expected<json::object> object = Parse(text);
  if (!object) return std::unexpected(object.error());
  Expected<std::optional<std::string>> word = Text(*object, "event");
  if (!word) return std::unexpected(word.error());
  Expected<JobEvent::Topic> topic = TopicOf(word->value_or("onFinalized"));
  if (!topic) return std::unexpected(topic.error());
  return EventOf(*topic, *object);
}

}  // namespace nodepool
