#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/foreign.h"
#include "model/states.h"

namespace nodepool {

// A disk image build (coordination.md 4.5). Image name and build id are in the path.
struct ImageBuild {
  std::optional<ImageState> state;
  WallTime state_time{};
  std::optional<std::string> builder;     // omitted on the wire when unset
  std::optional<std::string> builder_id;  // omitted on the wire when unset
  std::vector<std::string> formats;       // sorted; omitted on the wire when empty
  std::optional<std::string> username = "zuul";
  std::optional<std::string> python_path = "/usr/bin/python2";
  std::optional<std::string> shell_type;
  // Why it failed, one line; not in Python's records, whose programs ignore it; omitted on the wire when
  // unset.
  std::optional<std::string> error;
  Foreign foreign;
};

// An upload of a build to one provider (coordination.md 4.6).
struct ImageUpload {
  std::optional<ImageState> state;
  WallTime state_time{};
  std::optional<std::string> external_id;
  std::optional<std::string> external_name;
  std::optional<std::string> format;
  std::optional<std::string> username = "zuul";
  std::optional<std::string> python_path = "/usr/bin/python2";
  std::optional<std::string> shell_type;
  // How far it has come while it is `uploading`: "sending the file, 40 %"; omitted on the wire when unset.
  std::optional<std::string> progress;
  std::optional<std::string> error;  // as of a build
  Foreign foreign;
};

Expected<ImageBuild> ParseImageBuild(std::string_view json, WallTime now);
Expected<ImageUpload> ParseImageUpload(std::string_view json, WallTime now);
std::string ToJson(const ImageBuild& build);
std::string ToJson(const ImageUpload& upload);

}  // namespace nodepool
