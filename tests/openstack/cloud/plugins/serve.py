"""Serves all of one service in one process, so that its parts reach each other without a message broker.

    serve.py SERVICE CONFIG PORT
"""
import importlib
import os
import signal
import sys

SERVICE, CONFIG, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.argv = [f"{SERVICE}-all", "--config-file", CONFIG]


def with_waitress(module: str, factory: str):
    """For keystone and placement, which are plain web applications."""
    import waitress
    sys.argv = sys.argv[:1]
    application = getattr(importlib.import_module(module), factory)()
    waitress.serve(application, host="127.0.0.1", port=PORT, threads=8, connection_limit=400, channel_timeout=300,
                   clear_untrusted_proxy_headers=True)


def keystone():
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = CONFIG
    with_waitress("keystone.server.wsgi", "initialize_public_application")


def placement():
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = os.path.dirname(CONFIG)
    with_waitress("placement.wsgi", "init_application")


def glance():
    from glance.cmd.api import main
    main()


def neutron():
    """The API alone: there are no agents to be called."""
    from neutron.common import eventlet_utils
    eventlet_utils.monkey_patch()
    from neutron import service
    from neutron.common import config
    config.register_common_config_options()
    config.init(sys.argv[1:])
    config.setup_logging()
    config.set_config_defaults()
    server = service.serve_wsgi(service.NeutronApiService)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    server.wait()


def nova():
    import nova.cmd  # noqa: F401  makes eventlet's changes before anything else is imported
    # Otherwise the client library counts each address it ever asked, for ever.
    sys.modules["prometheus_client"] = None
    import standins_nova
    sys.modules["nova.virt.standins"] = standins_nova
    import os_vif
    from nova import config, context, objects, service
    from nova.objects import host_mapping
    from oslo_log import log
    from oslo_service import service as oslo
    from cloud.configs import ZONES
    config.parse_args(sys.argv)
    log.setup(config.CONF, "nova")
    objects.register_all()
    os_vif.initialize()
    launcher = oslo.ServiceLauncher(config.CONF, restart_method="mutate")
    parts = [("conductor", "conductor", "controller"), ("scheduler", "scheduler", "controller"),
             *(("compute", "compute", host) for host in ZONES.values())]
    for name, topic, host in parts:
        # One after the other: a compute asks the conductor while it starts.
        config.CONF.set_override("host", host)
        part = service.Service.create(host=host, binary=f"nova-{name}", topic=topic)
        part.start()
        launcher.services.services.append(part)
    host_mapping.discover_hosts(context.get_admin_context())
    config.CONF.set_override("host", "controller")
    launcher.launch_service(service.WSGIService("osapi_compute"))
    launcher.wait()


def cinder():
    import eventlet
    eventlet.monkey_patch()
    from cinder import coordination, i18n, objects, rpc, service, version
    i18n.enable_lazy()
    from cinder.common import config
    from oslo_config import cfg
    from oslo_log import log
    from oslo_service import service as oslo
    configuration = cfg.CONF
    configuration.register_opt(cfg.StrOpt("cluster"))
    objects.register_all()
    configuration(sys.argv[1:], project="cinder", version=version.version_string())
    config.set_middleware_defaults()
    log.setup(configuration, "cinder")
    coordination.COORDINATOR.start()
    rpc.init(configuration)
    launcher = oslo.ServiceLauncher(configuration, restart_method="mutate")
    launcher.launch_service(service.Service.create(binary="cinder-scheduler"))
    backend, = configuration.enabled_backends
    configuration.register_opt(cfg.StrOpt("backend_host"), group=backend)
    launcher.launch_service(service.Service.create(host=f"{configuration.host}@{backend}", service_name=backend,
                                                   binary="cinder-volume", coordination=False))
    launcher.launch_service(service.WSGIService("osapi_volume"))
    launcher.wait()


{"keystone": keystone, "placement": placement, "glance": glance, "neutron": neutron, "nova": nova,
 "cinder": cinder}[SERVICE]()
