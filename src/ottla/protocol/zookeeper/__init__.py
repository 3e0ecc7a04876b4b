"""ZooKeeper's wire protocol: records in jute, their headers, what each operation carries. No sockets."""
