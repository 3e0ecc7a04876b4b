"""What the settings say of the sockets of Kafka's listeners."""

from __future__ import annotations

from ottla.model.broker_config import BrokerConfig
from ottla.node.settings import BrokerSettings, connection_limits
from ottla.server.accepting import SocketOptions


def socket_options(settings: BrokerSettings) -> SocketOptions:
    limits = settings.connection_limits
    return SocketOptions(
        send_buffer_bytes=settings.socket_send_buffer_bytes,
        receive_buffer_bytes=settings.socket_receive_buffer_bytes,
        listen_backlog=settings.socket_listen_backlog_size,
        request_bytes_max=settings.socket_request_bytes_max,
        queued_request_bytes_max=settings.queued_request_bytes_max,
        connections_max=limits.connections_max,
        connections_per_address_max=limits.for_address,
        idle_ms_max=settings.connections_idle_ms_max,
    )


def limit_connections(options: SocketOptions, config: BrokerConfig) -> None:
    """max.connections and its kin may change while the broker runs."""
    limits = connection_limits(config)
    options.connections_max = limits.connections_max
    options.connections_per_address_max = limits.for_address
    options.connections_per_second_max = limits.per_second_max
