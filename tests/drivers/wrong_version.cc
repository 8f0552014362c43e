// Made for a version of the API that never was.
extern "C" {
extern const char nodepool_driver_api[];
const char nodepool_driver_api[] = "nodepool-driver-api: version 0, Boost 1_0, fmt 1, libstdc++ 1";
void* nodepool_create_driver() { return nullptr; }
}
