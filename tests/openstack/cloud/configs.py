"""The services' configuration files."""
import json

REGION = "RegionOne"
PASSWORD = "secret"  # of everybody
ZONES = {"az1": "host-1", "az2": "host-2"}  # availability zones, and a host of each
ADDRESS = "127.0.0.1"


def url(settings: dict, service: str) -> str:
    return f"http://{ADDRESS}:{settings['ports'][service]}"


def keystone_url(settings: dict) -> str:
    return url(settings, "keystone") + "/v3"


def ini(sections: dict) -> str:
    lines = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {value}" for key, value in options.items()]
    return "\n".join(lines) + "\n"


def files(settings: dict) -> dict[str, str]:
    """By their names below etc/."""
    found = {"database.cnf": database(settings["folder"])}
    for make in (keystone, glance, placement, neutron, nova, cinder):
        found.update({f"{make.__name__}/{name}": text for name, text in make(settings).items()})
    return found


def database(folder: str) -> str:
    """Nothing in it has to survive a crash of the machine."""
    return ini({"mysqld": {
        "user": "root", "datadir": f"{folder}/db", "socket": f"{folder}/run/db.sock", "pid-file": f"{folder}/run/db.own",
        "skip-networking": 1, "skip-log-bin": 1, "performance_schema": "OFF", "max_connections": 400,
        "innodb_buffer_pool_size": "128M", "innodb_flush_log_at_trx_commit": 0, "innodb_flush_method": "nosync",
        "innodb_doublewrite": 0, "character_set_server": "utf8mb3"}})


def _connection(settings: dict, schema: str) -> dict:
    # The client in C: the one in Python takes far more of the processor.
    target = f"mysql+mysqldb://root@localhost/{schema}?unix_socket={settings['folder']}/run/db.sock&charset=utf8"
    return {"connection": target, "max_pool_size": 20, "max_overflow": 50}


def _default(settings: dict, service: str, **more) -> dict:
    return {"log_file": f"{settings['folder']}/log/{service}.log", "use_stderr": "false", **more}


def _login(settings: dict) -> dict:
    return {"auth_type": "password", "auth_url": keystone_url(settings), "username": "services", "password": PASSWORD,
            "project_name": "services", "user_domain_name": "Default", "project_domain_name": "Default",
            "region_name": REGION}


def _tokens(settings: dict) -> dict:
    """How a service checks the tokens of its callers, and calls others for them."""
    login = _login(settings)
    return {"keystone_authtoken": {**login, "www_authenticate_uri": keystone_url(settings), "interface": "internal",
                                   "service_token_roles": "service", "service_token_roles_required": "true",
                                   "token_cache_time": 3600},
            "service_user": {**login, "send_service_user_token": "true"},
            "oslo_concurrency": {"lock_path": f"{settings['folder']}/locks"}}


def _paste(sections: dict) -> str:
    """Every pipeline checks the token by keystone's middleware."""
    return ini({**sections, "filter:authtoken": {"paste.filter_factory": "keystonemiddleware.auth_token:filter_factory"},
                "filter:requestid": {"paste.filter_factory": "oslo_middleware:RequestId.factory"}})


def keystone(settings: dict) -> dict[str, str]:
    keys = f"{settings['folder']}/etc/keystone"
    return {"keystone.conf": ini({
        "DEFAULT": _default(settings, "keystone"),
        "fernet_tokens": {"key_repository": f"{keys}/tokens"},
        "credential": {"key_repository": f"{keys}/credentials"},
        "identity": {"password_hash_rounds": 4},  # the cheapest: these passwords protect nothing
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        "database": _connection(settings, "keystone")})}


def glance(settings: dict) -> dict[str, str]:
    folder = settings["folder"]
    return {
        "glance.conf": ini({
            "DEFAULT": _default(settings, "glance", bind_host=ADDRESS, bind_port=settings["ports"]["glance"], workers=0,
                                public_endpoint=url(settings, "glance"), transport_url="fake:/",
                                node_staging_uri=f"file://{folder}/staging", image_cache_dir=f"{folder}/glance/cache",
                                worker_self_reference_url=url(settings, "glance"),
                                enabled_import_methods="[glance-direct,web-download]"),
            "paste_deploy": {"flavor": "keystone", "config_file": f"{folder}/etc/glance/paste.ini"},
            "glance_store": {"stores": "file,http", "default_store": "file", "filesystem_thin_provisioning": "true",
                             "filesystem_store_datadir": f"{folder}/images"},
            "task": {"work_dir": f"{folder}/glance"},
            "database": _connection(settings, "glance"), **_tokens(settings)}),
        "paste.ini": _paste({
            "pipeline:glance-api-keystone": {"pipeline": "requestid negotiation authtoken context tree"},
            "composite:tree": {"paste.composite_factory": "glance.api:root_app_factory", "/": "versions", "/v2": "api"},
            "app:versions": {"paste.app_factory": "glance.api.versions:create_resource"},
            "app:api": {"paste.app_factory": "glance.api.v2.router:API.factory"},
            "filter:negotiation": {"paste.filter_factory":
                                   "glance.api.middleware.version_negotiation:VersionNegotiationFilter.factory"},
            "filter:context": {"paste.filter_factory": "glance.api.middleware.context:ContextMiddleware.factory"}})}


def placement(settings: dict) -> dict[str, str]:
    return {"placement.conf": ini({"DEFAULT": _default(settings, "placement"), "api": {"auth_strategy": "keystone"},
                                   "placement_database": _connection(settings, "placement"), **_tokens(settings)})}


def neutron(settings: dict) -> dict[str, str]:
    folder = settings["folder"]
    return {
        "neutron.conf": ini({
            "DEFAULT": _default(settings, "neutron", state_path=f"{folder}/neutron", bind_host=ADDRESS,
                                bind_port=settings["ports"]["neutron"], api_workers=0, setproctitle="off",
                                api_paste_config=f"{folder}/etc/neutron/paste.ini", transport_url="fake:/",
                                core_plugin="ml2", service_plugins="standins_neutron.Router,tag,timestamp,revisions",
                                notify_nova_on_port_status_changes="true", notify_nova_on_port_data_changes="true",
                                dhcp_agent_notification="false"),
            "ml2": {"type_drivers": "flat,vxlan", "tenant_network_types": "vxlan", "mechanism_drivers": "standin",
                    "extension_drivers": "port_security"},
            "ml2_type_flat": {"flat_networks": "*"},
            "ml2_type_vxlan": {"vni_ranges": "1:4000"},
            "nova": _login(settings), "placement": _login(settings),
            "database": _connection(settings, "neutron"), **_tokens(settings)}),
        "paste.ini": _paste({
            "composite:neutron": {"use": "egg:Paste#urlmap", "/": "versions", "/v2.0": "v2"},
            "composite:v2": {"use": "call:neutron.auth:pipeline_factory",
                             "keystone": "requestid errors authtoken context extensions api"},
            "filter:errors": {"paste.filter_factory": "oslo_middleware:CatchErrors.factory"},
            "filter:context": {"paste.filter_factory": "neutron.auth:NeutronKeystoneContext.factory"},
            "filter:extensions": {"paste.filter_factory":
                                  "neutron.api.extensions:plugin_aware_extension_middleware_factory"},
            "app:versions": {"paste.app_factory": "neutron.pecan_wsgi.app:versions_factory"},
            "app:api": {"paste.app_factory": "neutron.api.v2.router:APIRouter.factory"}})}


def nova(settings: dict) -> dict[str, str]:
    folder = settings["folder"]
    return {
        "nova.conf": ini({
            "DEFAULT": _default(settings, "nova", my_ip=ADDRESS, state_path=f"{folder}/nova", transport_url="fake:/",
                                compute_driver="standins.Hypervisor", enabled_apis="osapi_compute",
                                osapi_compute_listen=ADDRESS, osapi_compute_listen_port=settings["ports"]["nova"],
                                osapi_compute_workers=1, max_concurrent_builds=50, sync_power_state_interval=-1,
                                reclaim_instance_interval=0, rpc_response_timeout=180,
                                block_device_allocate_retries_interval=1),
            "api": {"auth_strategy": "keystone"},
            "api_database": _connection(settings, "nova_api"), "database": _connection(settings, "nova"),
            "wsgi": {"api_paste_config": f"{folder}/etc/nova/paste.ini"},
            "quota": {"instances": 1000, "cores": -1, "ram": -1},
            "scheduler": {"workers": 1}, "conductor": {"workers": 1},
            "filter_scheduler": {"enabled_filters": "ComputeFilter", "host_subset_size": 2},
            "placement": _login(settings), "neutron": _login(settings),
            "glance": {"api_servers": url(settings, "glance")},
            "cinder": {**_login(settings), "catalog_info": "volumev3::publicURL", "os_region_name": REGION},
            "vnc": {"enabled": "false"}, **_tokens(settings)}),
        "paste.ini": _paste({
            "composite:osapi_compute": {"use": "call:nova.api.openstack.urlmap:urlmap_factory", "/": "versions",
                                        "/v2.1": "v21"},
            "composite:v21": {"use": "call:nova.api.auth:pipeline_factory_v21",
                              "keystone": "novaid faults authtoken context app"},
            "pipeline:versions": {"pipeline": "faults versionsapp"},
            "filter:novaid": {"paste.filter_factory": "nova.api.compute_req_id:ComputeReqIdMiddleware.factory"},
            "filter:faults": {"paste.filter_factory": "nova.api.openstack:FaultWrapper.factory"},
            "filter:context": {"paste.filter_factory": "nova.api.auth:NovaKeystoneContext.factory"},
            "app:app": {"paste.app_factory": "nova.api.openstack.compute:APIRouterV21.factory"},
            "app:versionsapp": {"paste.app_factory": "nova.api.openstack.compute.versions:Versions.factory"}})}


def cinder(settings: dict) -> dict[str, str]:
    folder = settings["folder"]
    return {
        "cinder.conf": ini({
            "DEFAULT": _default(settings, "cinder", state_path=f"{folder}/cinder", my_ip=ADDRESS, host="standin",
                                transport_url="fake:/", auth_strategy="keystone", enabled_backends="standin",
                                api_paste_config=f"{folder}/etc/cinder/paste.ini", osapi_volume_listen=ADDRESS,
                                osapi_volume_listen_port=settings["ports"]["cinder"], osapi_volume_workers=1,
                                glance_api_servers=url(settings, "glance"), rpc_response_timeout=180,
                                resource_query_filters_file=f"{folder}/etc/cinder/filters.json",
                                periodic_interval=3),  # requests wait so long after the start
            "standin": {"volume_driver": "standins_cinder.Disks", "volume_backend_name": "standin"},
            "nova": {**_login(settings), "interface": "public"},
            "coordination": {"backend_url": f"file://{folder}/cinder/coordination"},
            "database": _connection(settings, "cinder"), **_tokens(settings)}),
        "filters.json": json.dumps({"volume": ["name", "status", "metadata"], "snapshot": ["name", "status"]}),
        "paste.ini": _paste({
            "composite:osapi_volume": {"use": "call:cinder.api:root_app_factory", "/": "versions", "/v3": "v3"},
            "composite:v3": {"use": "call:cinder.api.middleware.auth:pipeline_factory",
                             "keystone": "cinderid faults authtoken context app"},
            "pipeline:versions": {"pipeline": "faults versionsapp"},
            "filter:cinderid": {"paste.filter_factory": "cinder.api.middleware.request_id:RequestId.factory"},
            "filter:faults": {"paste.filter_factory": "cinder.api.middleware.fault:FaultWrapper.factory"},
            "filter:context": {"paste.filter_factory": "cinder.api.middleware.auth:CinderKeystoneContext.factory"},
            "app:app": {"paste.app_factory": "cinder.api.v3.router:APIRouter.factory"},
            "app:versionsapp": {"paste.app_factory": "cinder.api.versions:Versions.factory"}})}
