#include "drivers/aws/compute/quota_codes.h"

#include <map>

namespace nodepool::drivers::aws {
namespace {

struct FamilyCodes {
  std::string_view on_demand;
  std::string_view spot;
};

constexpr FamilyCodes kStandard{"L-1216C47A", "L-34B43A08"};
constexpr FamilyCodes kGraphics{"L-DB2E81BA", "L-3819A6DF"};
constexpr FamilyCodes kHighMemory{"L-43DA4232", ""};

// By the letters that a type begins with.
const std::map<std::string_view, FamilyCodes> kFamilies = {
    {"a", kStandard},
    {"c", kStandard},
    {"d", kStandard},
    {"h", kStandard},
    {"i", kStandard},
    {"im", kStandard},
    {"is", kStandard},
    {"m", kStandard},
    {"r", kStandard},
    {"t", kStandard},
    {"z", kStandard},
    {"dl", {"L-6E869C2A", "L-85EED4F7"}},
    {"f", {"L-74FC7D96", "L-88CF9481"}},
    {"g", kGraphics},
    {"gr", kGraphics},
    {"vt", kGraphics},
    {"u", kHighMemory},
    {"u-", kHighMemory},
    {"inf", {"L-1945791B", "L-B5D1601B"}},
    {"p", {"L-417A185B", "L-7212CCBC"}},
    {"x", {"L-7295265B", "L-E3A00192"}},
    {"trn", {"L-2C3B7624", "L-6B0D517C"}},
    {"hpc", {"L-F7808C92", ""}},
};

const std::map<std::string_view, VolumeCodes> kVolumeTypes = {
    {"io1", {"L-FD252861", "L-B3A130E6"}}, {"io2", {"L-09BD8365", "L-8D977E7E"}}, {"gp2", {"L-D18FCD1D", ""}},
    {"gp3", {"L-7A658B76", ""}},           {"sc1", {"L-17AF77E8", ""}},           {"st1", {"L-82ACEF56", ""}},
    {"standard", {"L-9CF3C2EB", ""}},
};

}  // namespace

std::string_view CodeOfType(std::string_view type, bool is_spot) {
  std::size_t letters = type.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
  auto family = kFamilies.find(type.substr(0, letters));
  if (family == kFamilies.end()) return "";
  return is_spot ? family->second.spot : family->second.on_demand;
}

VolumeCodes CodesOfVolume(std::string_view volume_type) {
  auto codes = kVolumeTypes.find(volume_type);
  return codes == kVolumeTypes.end() ? VolumeCodes() : codes->second;
}

}  // namespace nodepool::drivers::aws
