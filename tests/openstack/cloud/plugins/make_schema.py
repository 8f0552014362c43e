"""Makes the tables of a service.

    make_schema.py SERVICE CONFIG
"""
import sys

service, config = sys.argv[1:]
WORDS = {"glance": ["db_sync"], "placement": ["db", "sync"], "neutron": ["upgrade", "heads"], "cinder": ["db", "sync"]}
sys.argv = [f"{service}-manage", "--config-file", config, *WORDS.get(service, ())]


def nova() -> int:
    """Two cells, as nova wants it: one for servers that no host has, one for all others."""
    from nova import config as nova_config, context, objects
    from nova.cmd import manage
    from oslo_utils import uuidutils
    nova_config.parse_args(sys.argv)
    objects.register_all()
    manage.ApiDbCommands().sync()
    connection = nova_config.CONF.database.connection
    admin = context.get_admin_context()

    def cell(name, uuid, transport, target):
        objects.CellMapping(admin, uuid=uuid, name=name, transport_url=transport, database_connection=target).create()
    cell("cell0", objects.CellMapping.CELL0_UUID, "none:///", connection.replace("/nova?", "/nova_cell0?"))
    result = manage.DbCommands().sync()
    cell("cell1", uuidutils.generate_uuid(), nova_config.CONF.transport_url, connection)
    return result


def others() -> int:
    if service == "glance":
        from glance.cmd.manage import main
    elif service == "placement":
        from placement.cmd.manage import main
    elif service == "neutron":
        from neutron.db.migration.cli import main
    else:
        from cinder.cmd.manage import main
    return main()


sys.exit(nova() if service == "nova" else others())
