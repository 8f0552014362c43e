#include "drivers/aws/compute/spot_requests.h"

#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

std::vector<SpotRequest> ReadSpotRequests(const pugi::xml_node& root) {
  std::vector<SpotRequest> requests;
  for (const pugi::xml_node& item : Items(root, "spotInstanceRequestSet")) {
    SpotRequest request;
    request.instance = TextAt(item, {"instanceId"});
    request.status = TextAt(item, {"status", "code"});
    request.message = TextAt(item, {"status", "message"});
    if (!request.instance.empty()) requests.push_back(std::move(request));
  }
  return requests;
}

Task<std::vector<SpotRequest>> ListMarkedSpotRequests(Ec2& ec2) {
  Query query("DescribeSpotInstanceRequests");
  query.AddFilter("status-code", {"marked-for-termination", "marked-for-stop"});
  query.Add("MaxResults", 1000);
  return ec2.List(std::move(query), &ReadSpotRequests);
}

}  // namespace nodepool::drivers::aws
