#include "model/validation.h"

#include <algorithm>
#include <boost/json/value.hpp>

#include "base/json_fields.h"

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::string_view kBuildKey = "build";
constexpr std::string_view kUploadKey = "upload";

}  // namespace

LabelName ValidationLabel(const LabelName& label) {
  return LabelName("nodepool-validation-of-" + label.value);
}

bool IsForValidation(const Node& node) { return std::ranges::any_of(node.type, &IsValidationLabel); }

NodeRequest ValidationRequest(LabelName label, ProviderName provider, const UploadToValidate& upload,
                              WallTime now) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, now);
  request.created_time = now;
  request.node_types = {std::move(label)};
  request.provider = std::move(provider);
  request.reuse = false;
  request.requestor = std::string(kValidationRequestor);
  request.requestor_data =
      json::value(json::object{{kBuildKey, upload.build.value}, {kUploadKey, upload.upload.value}});
  return request;
}

std::optional<UploadToValidate> UploadToValidateBy(const NodeRequest& request) {
  if (request.requestor != kValidationRequestor) return std::nullopt;
  json::value data = request.requestor_data.value();
  const json::object* object = data.if_object();
  if (object == nullptr) return std::nullopt;
  UploadToValidate upload{BuildId(TextIn(*object, kBuildKey)), UploadId(TextIn(*object, kUploadKey))};
  if (upload.build.empty() || upload.upload.empty()) return std::nullopt;
  return upload;
}

}  // namespace nodepool
