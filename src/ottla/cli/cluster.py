"""`ottla cluster`: the brokers of a cluster, their disks, and what they speak."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import ExitCode
from ottla.cli.options import add_cluster, add_output, add_verb, add_verbs
from ottla.cli.output import Row, print_facts, print_rows, print_table
from ottla.cli.sizes import format_bytes

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_values import BrokerVersions, ClusterDescription


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    show = add_verb(verbs, "show", _show, "show brokers, leaders, disks and features")
    show.add_argument("--apis", action="store_true", help="the protocol's APIs and versions instead")
    add_cluster(show)
    add_output(show)


def _show(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        cluster, versions = admin.cluster(), admin.broker_versions()
        if options.apis:
            print_rows(_apis(versions), options.output, ("key", "api", "first", "last"))
            return ExitCode.DONE
        brokers = _brokers(admin, cluster)
    facts: Row = {
        "cluster": cluster.id,
        "controller": cluster.controller_id,
        "features": {name: last for name, (_, last) in versions.finalized_features.items()},
    }
    if options.output == "table":
        print_facts(facts, "table")
        print()
        rows = [{**row, "disk_used": format_bytes(int(str(row["disk_used"])))} for row in brokers]
        print_table(rows, list(brokers[0]) if brokers else [])
    elif options.output == "json":
        print_facts({**facts, "brokers": list(brokers)}, "json")
    else:
        print_rows(brokers, options.output)
    return ExitCode.DONE


def _brokers(admin: Admin, cluster: ClusterDescription) -> list[Row]:
    topics = admin.topics(internal=True)
    led = Counter(partition.leader for topic in topics for partition in topic.partitions)
    held = Counter(
        replica for topic in topics for partition in topic.partitions for replica in partition.replicas
    )
    used: Counter[int] = Counter()
    for directory in admin.log_dirs():
        used[directory.broker_id] += sum(replica.bytes for replica in directory.replicas)
    return [
        {
            "broker": broker.id,
            "address": str(broker.address),
            "rack": broker.rack,
            "leads": led[broker.id],
            "replicas": held[broker.id],
            "disk_used": used[broker.id],
        }
        for broker in cluster.brokers
    ]


def _apis(versions: BrokerVersions) -> list[Row]:
    return [
        {"key": api.key, "api": api.name or "?", "first": api.first, "last": api.last}
        for api in versions.apis
    ]
