"""The records of ZooKeeper's protocol, field by field as its `zookeeper.jute` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from ottla.model.values import NamedTuple
from ottla.protocol.zookeeper.jute import Blob, Boolean, Int, Long, Ustring, Vector

# -- parts of others ---------------------------------------------------------------------------------------


class Acl(NamedTuple):
    """Jute has scheme and id in a record of their own, which are the same bytes."""

    perms: Int  # a sum of read 1, write 2, create 4, delete 8, admin 16
    scheme: Ustring
    id: Ustring


class Stat(NamedTuple):
    czxid: Long
    mzxid: Long
    ctime_ms: Long
    mtime_ms: Long
    version: Int
    cversion: Int
    aversion: Int
    ephemeral_owner: Long
    data_length: Int
    num_children: Int
    pzxid: Long


class ClientInfo(NamedTuple):
    auth_scheme: Ustring
    user: Ustring


Acls: TypeAlias = Annotated[Sequence[Acl], Vector(Acl)]
Texts: TypeAlias = Annotated[Sequence[str], Vector(Ustring)]

# -- requests ----------------------------------------------------------------------------------------------


class PathRequest(NamedTuple):
    """getACL, sync, getEphemerals, getAllChildrenNumber."""

    path: Ustring


class WatchedRequest(NamedTuple):
    """exists, getData, getChildren, getChildren2: may leave a watch."""

    path: Ustring
    watch: Boolean


class VersionedRequest(NamedTuple):
    """delete, check."""

    path: Ustring
    version: Int


class WatchTypeRequest(NamedTuple):
    """checkWatches and removeWatches with a type of watch, addWatch with a mode."""

    path: Ustring
    type: Int


class CreateRequest(NamedTuple):
    """create, create2, createContainer."""

    path: Ustring
    data: Blob
    acl: Acls
    flags: Int


class CreateTtlRequest(NamedTuple):
    path: Ustring
    data: Blob
    acl: Acls
    flags: Int
    ttl_ms: Long


class SetDataRequest(NamedTuple):
    path: Ustring
    data: Blob
    version: Int


class SetAclRequest(NamedTuple):
    path: Ustring
    acl: Acls
    version: Int


class SetWatchesRequest(NamedTuple):
    """After a reconnect: the watches that the client has, and the last zxid it has seen."""

    relative_zxid: Long
    data: Texts
    exists: Texts
    children: Texts


class SetWatches2Request(NamedTuple):
    relative_zxid: Long
    data: Texts
    exists: Texts
    children: Texts
    persistent: Texts
    persistent_recursive: Texts


class AuthRequest(NamedTuple):
    type: Int  # always 0
    scheme: Ustring
    auth: Blob


class SaslToken(NamedTuple):
    """A step of a SASL exchange, in either direction."""

    token: Blob


# -- answers -----------------------------------------------------------------------------------------------


class PathResponse(NamedTuple):
    """create, createContainer, createTTL before the Stat came; sync."""

    path: Ustring


class CreateResponse(NamedTuple):
    """create2, createContainer, createTTL."""

    path: Ustring
    stat: Stat


class StatResponse(NamedTuple):
    """exists, setData, setACL."""

    stat: Stat


class DataResponse(NamedTuple):
    data: Blob
    stat: Stat


class AclResponse(NamedTuple):
    acl: Acls
    stat: Stat


class TextsResponse(NamedTuple):
    """getChildren, getEphemerals."""

    texts: Texts


class ChildrenResponse(NamedTuple):
    """getChildren2."""

    children: Texts
    stat: Stat


class CountResponse(NamedTuple):
    """getAllChildrenNumber."""

    total: Int


class WhoAmIResponse(NamedTuple):
    client_info: Annotated[Sequence[ClientInfo], Vector(ClientInfo)]


class ErrorResponse(NamedTuple):
    """In place of a result in the answer to a multi."""

    code: Int


class WatcherEvent(NamedTuple):
    type: Int
    state: Int
    path: Ustring
