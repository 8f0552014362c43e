"""What the cloud is filled with.

    python3 -m cloud.contents identity|resources SETTINGS

Users, each with a project and a cloud in clouds.yaml of the same name: `admin`, `ci`, and
`small`, whose quota is two servers. Networks: `dual` (IPv4 and IPv6, nobody routes it),
`private` (routed to `public`), `public` (of floating IPs). `cirros` is an image.
"""
import json
import os
import pathlib
import sys

import openstack
import yaml

from cloud.configs import PASSWORD, REGION, ZONES, keystone_url, url

SERVICES = {"image": ("glance", ""), "placement": ("placement", ""), "network": ("neutron", ""),
            "volumev3": ("cinder", "/v3/%(project_id)s"), "compute": ("nova", "/v2.1")}
ROLES = {"services": ("admin", "service"), "ci": ("member",), "small": ("member",)}
#          cores, MiB, GB, what the hypervisor is told
FLAVORS = {"m1.tiny": (1, 512, 1, {}), "m1.small": (1, 2048, 20, {}), "v1.volume": (2, 4096, 0, {}),
           "t.error": (1, 2048, 20, {"fake:spawn_fail": "yes"}),
           "t.fail-delete": (1, 2048, 20, {"fake:delete_fail": "1"})}
#         servers, cores, MiB, floating IPs, ports, volumes
QUOTAS = {"ci": (1000, 4000, 8192000, 200, 5000, 1000), "small": (2, 4, 8192, 1, 10, 2)}


def login(settings: dict, user: str, **more) -> dict:
    auth = {"auth_url": keystone_url(settings), "username": user, "password": PASSWORD, "project_name": user,
            "user_domain_name": "Default", "project_domain_name": "Default"}
    return {"auth": auth, "region_name": REGION, **more}


def write_clouds(settings: dict, **more):
    direct = [{"name": "dual", "routes_externally": True}]
    clouds = {"admin": login(settings, "admin"), "ci": login(settings, "ci"), "small": login(settings, "small"),
              "ci-private": login(settings, "ci", private=True), "ci-direct": login(settings, "ci", networks=direct),
              **more}
    path = pathlib.Path(settings["folder"]) / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": clouds}))
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(path)


def identity(settings: dict):
    write_clouds(settings)
    keystone = openstack.connect(cloud="admin").identity
    for kind, (name, path) in SERVICES.items():
        service = keystone.create_service(type=kind, name=name)
        for interface in ("public", "internal", "admin"):
            keystone.create_endpoint(service_id=service.id, interface=interface, region_id=REGION,
                                     url=url(settings, name) + path)
    keystone.create_role(name="service")
    for name, roles in ROLES.items():
        project = keystone.create_project(name=name, domain_id="default")
        user = keystone.create_user(name=name, domain_id="default", password=PASSWORD, default_project_id=project.id)
        for role in roles:
            keystone.assign_project_role_to_user(project, user, keystone.find_role(role))


def make_networks(neutron):
    def network(name, *subnets, **attributes):
        made = neutron.create_network(name=name, **attributes)
        # Addresses are loopback ones, so that a test can listen there; neutron serves none of those by DHCP.
        return made, [neutron.create_subnet(network_id=made.id, is_dhcp_enabled=False, **subnet) for subnet in subnets]
    _, subnets = network("private", {"ip_version": 4, "cidr": "127.64.0.0/16"}, is_shared=True)
    network("dual", {"ip_version": 4, "cidr": "127.66.0.0/16", "gateway_ip": None},
            {"ip_version": 6, "cidr": "fd00:64::/64", "gateway_ip": None}, is_shared=True)
    public, _ = network("public", {"ip_version": 4, "cidr": "127.65.0.0/16"}, is_router_external=True)
    router = neutron.create_router(name="router", external_gateway_info={"network_id": public.id})
    neutron.add_interface_to_router(router, subnet_id=subnets[0].id)


def resources(settings: dict):
    write_clouds(settings)
    admin = openstack.connect(cloud="admin")
    for name, (cores, ram, disk, told) in FLAVORS.items():
        flavor = admin.compute.create_flavor(name=name, vcpus=cores, ram=ram, disk=disk)
        if told:
            admin.compute.create_flavor_extra_specs(flavor, told)
    make_networks(admin.network)
    image = admin.image.create_image(name="cirros", data=b"no system " * 6400, disk_format="raw",
                                     container_format="bare", visibility="public", allow_duplicates=True)
    for zone, host in ZONES.items():
        aggregate = admin.compute.create_aggregate(name=zone, availability_zone=zone)
        admin.compute.add_host_to_aggregate(aggregate, host)
    for name, (servers, cores, ram, addresses, ports, volumes) in QUOTAS.items():
        project = admin.identity.find_project(name).id
        admin.set_compute_quotas(project, instances=servers, cores=cores, ram=ram)
        admin.network.update_quota(project, floating_ips=addresses, ports=ports)
        admin.set_volume_quotas(project, volumes=volumes, gigabytes=volumes * 100)
    make_application_credential(settings)


def make_application_credential(settings: dict):
    ci = openstack.connect(cloud="ci")
    made = ci.identity.create_application_credential(user=ci.current_user_id, name="nodepool")
    auth = {"auth_url": keystone_url(settings), "application_credential_id": made.id,
            "application_credential_secret": made.secret}
    write_clouds(settings, **{"ci-appcred": {"auth_type": "v3applicationcredential", "auth": auth,
                                             "region_name": REGION}})


if __name__ == "__main__":
    {"identity": identity, "resources": resources}[sys.argv[1]](json.loads(pathlib.Path(sys.argv[2]).read_text()))
