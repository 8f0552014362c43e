"""Disks for cinder that hold nothing."""
from cinder import interface
from cinder.volume import driver


def nothing(self, *arguments, **options):
    return None


@interface.volumedriver
class Disks(driver.VolumeDriver):
    VERSION = "1"
    CI_WIKI_NAME = "none"

    do_setup = check_for_setup_error = nothing
    create_volume = delete_volume = create_cloned_volume = copy_image_to_volume = extend_volume = nothing
    create_snapshot = delete_snapshot = create_volume_from_snapshot = nothing
    ensure_export = create_export = remove_export = terminate_connection = nothing

    def get_volume_stats(self, refresh=False):
        return {"volume_backend_name": "standin", "vendor_name": "none", "driver_version": self.VERSION,
                "storage_protocol": "none", "total_capacity_gb": "infinite", "free_capacity_gb": "infinite",
                "reserved_percentage": 0, "QoS_support": False}

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {}, True

    def initialize_connection(self, volume, connector, **options):
        return {"driver_volume_type": "fake", "data": {"volume_id": volume["id"]}}
