"""What network agents would report to neutron, reported at once."""
from neutron.objects.router import FloatingIP
from neutron.services.l3_router.l3_router_plugin import L3RouterPlugin
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class Switch(api.MechanismDriver):
    """Every port is bound to the host that it is wanted on."""

    def initialize(self):
        pass

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        segment = context.segments_to_bind[0]
        context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OVS, {}, status=constants.PORT_STATUS_ACTIVE)


class Router(L3RouterPlugin):
    """A floating IP is ACTIVE as long as it is bound to a port."""

    def _report(self, context, ip_id, port_id):
        status = constants.FLOATINGIP_STATUS_ACTIVE if port_id else constants.FLOATINGIP_STATUS_DOWN
        self.update_floatingip_status(context.elevated(), ip_id, status)
        return status

    def create_floatingip(self, context, floatingip):
        made = super().create_floatingip(context, floatingip)
        made["status"] = self._report(context, made["id"], made["port_id"])
        return made

    def update_floatingip(self, context, id, floatingip):
        made = super().update_floatingip(context, id, floatingip)
        made["status"] = self._report(context, id, made["port_id"])
        return made

    def disassociate_floatingips(self, context, port_id, do_notify=True):
        bound = [ip.id for ip in FloatingIP.get_objects(context.elevated(), fixed_port_id=port_id)]
        result = super().disassociate_floatingips(context, port_id, do_notify=do_notify)
        for ip_id in bound:
            self._report(context, ip_id, None)
        return result
