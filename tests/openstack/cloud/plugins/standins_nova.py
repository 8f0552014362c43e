"""A hypervisor for nova without machines, which does as metadata and flavor tell it.

Metadata of the server win over the flavor's extra specs:

    fake:spawn_delay   seconds that a start takes
    fake:spawn_fail    every start fails
    fake:delete_fail   so many deletions fail, and leave the server in ERROR
"""
import collections
import time

from nova import exception
from nova.virt import fake


class Hypervisor(fake.FakeDriver):
    vcpus, memory_mb, local_gb = 4000, 16_000_000, 6_000_000

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.failed = collections.Counter()

    @staticmethod
    def told(instance, what, otherwise="0"):
        key = f"fake:{what}"
        return instance.metadata.get(key) or instance.flavor.extra_specs.get(key, otherwise)

    def spawn(self, context, instance, *arguments, **options):
        time.sleep(float(self.told(instance, "spawn_delay")))
        if self.told(instance, "spawn_fail", ""):
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason="it was told to fail")
        super().spawn(context, instance, *arguments, **options)

    def destroy(self, context, instance, *arguments, **options):
        if self.failed[instance.uuid] < int(self.told(instance, "delete_fail")):
            self.failed[instance.uuid] += 1
            raise exception.NovaException("it was told to fail")
        del self.failed[instance.uuid]
        super().destroy(context, instance, *arguments, **options)

    def get_console_output(self, context, instance):
        return f"booting {instance.uuid}\nlogin: "
