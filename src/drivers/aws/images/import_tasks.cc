#include "drivers/aws/images/import_tasks.h"

#include "async/attempt.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

namespace {

void AddSource(Query& query, const std::string& container, const ImportOrder& order) {
  query.Add(container + ".Format", order.format);
  query.Add(container + ".UserBucket.S3Bucket", order.bucket);
  query.Add(container + ".UserBucket.S3Key", order.key);
  query.Add("ClientToken", order.token);
}

std::string ReadTaskId(const pugi::xml_node& root) { return TextAt(root, {"importTaskId"}); }

}  // namespace

std::vector<ImportTask> ReadSnapshotTasks(const pugi::xml_node& root) {
  std::vector<ImportTask> tasks;
  for (const pugi::xml_node& item : Items(root, "importSnapshotTaskSet")) {
    pugi::xml_node detail = item.child("snapshotTaskDetail");
    tasks.push_back({TextAt(item, {"importTaskId"}), TextAt(detail, {"status"}),
                     TextAt(detail, {"statusMessage"}), NumberAt(detail, {"progress"}), "",
                     TextAt(detail, {"snapshotId"}), ReadTagSet(item)});
  }
  return tasks;
}

std::vector<ImportTask> ReadImageTasks(const pugi::xml_node& root) {
  std::vector<ImportTask> tasks;
  for (const pugi::xml_node& item : Items(root, "importImageTaskSet")) {
    tasks.push_back({TextAt(item, {"importTaskId"}), TextAt(item, {"status"}),
                     TextAt(item, {"statusMessage"}), NumberAt(item, {"progress"}), TextAt(item, {"imageId"}),
                     TextAt(item, {"snapshotDetailSet", "item", "snapshotId"}), ReadTagSet(item)});
  }
  return tasks;
}

Task<std::string> BeginImport(Ec2& ec2, ImportKind kind, const ImportOrder& order) {
  bool is_image = kind == ImportKind::kImage;
  Query query = is_image ? Query("ImportImage") : Query("ImportSnapshot");
  AddSource(query, is_image ? "DiskContainer.1" : "DiskContainer", order);
  if (is_image) query.Add("Architecture", order.architecture);
  AddTagSpecifications({is_image ? "import-image-task" : "import-snapshot-task"}, order.tags, query);
  std::string id = co_await ec2.Call<std::string>(std::move(query), &ReadTaskId);
  if (id.empty()) throw Error(Verdict::kRetry, "AWS began an import and returned no id of its task");
  co_return id;
}

Task<std::vector<ImportTask>> ListImportTasks(Ec2& ec2, ImportKind kind, std::string id) {
  bool is_image = kind == ImportKind::kImage;
  Query query = is_image ? Query("DescribeImportImageTasks") : Query("DescribeImportSnapshotTasks");
  if (!id.empty()) query.Add("ImportTaskId.1", id);
  Task<std::vector<ImportTask>> list =
      ec2.List<ImportTask>(std::move(query), is_image ? &ReadImageTasks : &ReadSnapshotTasks);
  Outcome<std::vector<ImportTask>> tasks = co_await Attempt(std::move(list));
  if (!tasks && CodeOf(tasks.error()).starts_with("InvalidConversionTaskId")) {
    co_return std::vector<ImportTask>();
  }
  if (!tasks) tasks.error().Rethrow();
  co_return std::move(*tasks);
}

}  // namespace nodepool::drivers::aws
