"""ZooKeeper's operations by number: what a request of each carries, and what the answer to it."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ottla.protocol.zookeeper.records import (
    AclResponse,
    AuthRequest,
    ChildrenResponse,
    CountResponse,
    CreateRequest,
    CreateResponse,
    CreateTtlRequest,
    DataResponse,
    PathRequest,
    PathResponse,
    SaslToken,
    SetAclRequest,
    SetDataRequest,
    SetWatches2Request,
    SetWatchesRequest,
    StatResponse,
    TextsResponse,
    VersionedRequest,
    WatchedRequest,
    WatchTypeRequest,
    WhoAmIResponse,
)


class OpCode(IntEnum):
    CLOSE_SESSION = -11
    ERROR = -1
    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107


REQUESTS: dict[OpCode, type[Any]] = {
    OpCode.CREATE: CreateRequest,
    OpCode.DELETE: VersionedRequest,
    OpCode.EXISTS: WatchedRequest,
    OpCode.GET_DATA: WatchedRequest,
    OpCode.SET_DATA: SetDataRequest,
    OpCode.GET_ACL: PathRequest,
    OpCode.SET_ACL: SetAclRequest,
    OpCode.GET_CHILDREN: WatchedRequest,
    OpCode.SYNC: PathRequest,
    OpCode.GET_CHILDREN2: WatchedRequest,
    OpCode.CHECK: VersionedRequest,
    OpCode.CREATE2: CreateRequest,
    OpCode.CHECK_WATCHES: WatchTypeRequest,
    OpCode.REMOVE_WATCHES: WatchTypeRequest,
    OpCode.CREATE_CONTAINER: CreateRequest,
    OpCode.CREATE_TTL: CreateTtlRequest,
    OpCode.AUTH: AuthRequest,
    OpCode.SET_WATCHES: SetWatchesRequest,
    OpCode.SASL: SaslToken,
    OpCode.GET_EPHEMERALS: PathRequest,
    OpCode.GET_ALL_CHILDREN_NUMBER: PathRequest,
    OpCode.SET_WATCHES2: SetWatches2Request,
    OpCode.ADD_WATCH: WatchTypeRequest,
}
"""Those that are not here carry nothing, or, as multi, something of their own."""

RESPONSES: dict[OpCode, type[Any]] = {
    OpCode.CREATE: PathResponse,
    OpCode.EXISTS: StatResponse,
    OpCode.GET_DATA: DataResponse,
    OpCode.SET_DATA: StatResponse,
    OpCode.GET_ACL: AclResponse,
    OpCode.SET_ACL: StatResponse,
    OpCode.GET_CHILDREN: TextsResponse,
    OpCode.SYNC: PathResponse,
    OpCode.GET_CHILDREN2: ChildrenResponse,
    OpCode.CREATE2: CreateResponse,
    OpCode.CREATE_CONTAINER: CreateResponse,
    OpCode.CREATE_TTL: CreateResponse,
    OpCode.SASL: SaslToken,
    OpCode.GET_EPHEMERALS: TextsResponse,
    OpCode.GET_ALL_CHILDREN_NUMBER: CountResponse,
    OpCode.WHO_AM_I: WhoAmIResponse,
}
"""Those that are not here are answered with a header only, or, as multi, with something of their own."""
