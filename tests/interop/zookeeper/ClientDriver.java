import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Uses every call of ZooKeeper's Java client. Ends with an exception when anything is not as ZooKeeper has it. */
public final class ClientDriver {
    private static final List<ACL> OPEN = ZooDefs.Ids.OPEN_ACL_UNSAFE;
    private static final long PATIENCE_SECONDS = 60;

    /** Events in the order they came, without those that tell of the connection. */
    private static final class Events implements Watcher {
        final BlockingQueue<WatchedEvent> queue = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != EventType.None) {
                queue.add(event);
            }
        }

        void expect(EventType type, String path) throws InterruptedException {
            WatchedEvent event = queue.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            check(event != null && event.getType() == type && event.getPath().equals(path),
                    "expected " + type + " of " + path + ", got " + event);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String address = arguments[1];
        switch (arguments[0]) {
            case "calls" -> calls(address);
            case "outlive" -> outlive(address);
            case "sasl" -> sasl(address);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("done");
    }

    private static ZooKeeper connect(String address, int timeoutMs) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(address, timeoutMs, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        check(connected.await(PATIENCE_SECONDS, TimeUnit.SECONDS), "no connection");
        return client;
    }

    private static void calls(String address) throws Exception {
        try (ZooKeeper root = connect(address, 10_000)) {
            root.create("/java", bytes(""), OPEN, CreateMode.PERSISTENT);
        }
        try (ZooKeeper client = connect(address + "/java", 10_000); ZooKeeper other = connect(address, 10_000)) {
            nodes(client);
            kinds(client);
            multis(client);
            watches(client, other);
            accessLists(client, other);
        }
    }

    private static void nodes(ZooKeeper client) throws Exception {
        Stat created = new Stat();
        check(client.create("/a", bytes("1"), OPEN, CreateMode.PERSISTENT, created).equals("/a"), "create2");
        check(created.getDataLength() == 1 && created.getVersion() == 0, "stat of create2");
        check(client.setData("/a", bytes("22"), 0).getVersion() == 1, "setData");
        Stat stat = new Stat();
        check(Arrays.equals(client.getData("/a", false, stat), bytes("22")), "getData");
        check(stat.getMzxid() > stat.getCzxid() && stat.getDataLength() == 2, "stat");
        fails(KeeperException.Code.BADVERSION, () -> client.setData("/a", bytes("3"), 0));
        fails(KeeperException.Code.NODEEXISTS, () -> client.create("/a", null, OPEN, CreateMode.PERSISTENT));
        fails(KeeperException.Code.NONODE, () -> client.getData("/missing", false, null));
        check(client.exists("/missing", false) == null, "exists");
        client.create("/a/null", null, OPEN, CreateMode.PERSISTENT);
        check(client.getData("/a/null", false, null) == null, "null data stays null");
        fails(KeeperException.Code.NOTEMPTY, () -> client.delete("/a", -1));
        client.create("/a/null/deeper", bytes(""), OPEN, CreateMode.PERSISTENT);
        check(client.getAllChildrenNumber("/a") == 2, "getAllChildrenNumber");
        Stat parent = new Stat();
        check(client.getChildren("/a", false, parent).equals(List.of("null")), "getChildren");
        check(parent.getNumChildren() == 1 && parent.getCversion() == 1, "stat of the parent");
        CountDownLatch synced = new CountDownLatch(1);
        client.sync("/a", (code, path, context) -> synced.countDown(), null);
        check(synced.await(PATIENCE_SECONDS, TimeUnit.SECONDS), "sync");
    }

    private static void kinds(ZooKeeper client) throws Exception {
        client.create("/kinds", null, OPEN, CreateMode.CONTAINER);
        String one = client.create("/kinds/n-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL);
        String two = client.create("/kinds/n-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL);
        check(one.endsWith("-0000000000") && two.endsWith("-0000000001"), one + " " + two);
        Stat stat = new Stat();
        client.create("/kinds/ttl", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, stat, 60_000);
        client.create("/kinds/e", null, OPEN, CreateMode.EPHEMERAL);
        check(client.exists("/kinds/e", false).getEphemeralOwner() == client.getSessionId(), "owner");
        // The client leaves its chroot in these paths.
        check(Set.copyOf(client.getEphemerals("/")).equals(Set.of("/java/kinds/e", "/java" + two)), "getEphemerals");
        fails(KeeperException.Code.NOCHILDRENFOREPHEMERALS,
                () -> client.create("/kinds/e/x", null, OPEN, CreateMode.PERSISTENT));
    }

    private static void multis(ZooKeeper client) throws Exception {
        List<OpResult> results = client.multi(List.of(
                Op.create("/m", bytes("1"), OPEN, CreateMode.PERSISTENT), Op.setData("/m", bytes("2"), 0),
                Op.check("/m", 1), Op.create("/m/x", null, OPEN, CreateMode.PERSISTENT), Op.delete("/m/x", 0)));
        // Here too the client leaves its chroot in the path.
        check(((OpResult.CreateResult) results.get(0)).getPath().equals("/java/m"), "created in a multi");
        check(((OpResult.SetDataResult) results.get(1)).getStat().getVersion() == 1, "set in a multi");
        fails(KeeperException.Code.BADVERSION, () -> client.multi(List.of(
                Op.setData("/m", bytes("lost"), -1), Op.check("/m", 77),
                Op.create("/m/y", null, OPEN, CreateMode.PERSISTENT))));
        check(Arrays.equals(client.getData("/m", false, null), bytes("2")), "a failed multi changes nothing");
        List<OpResult> reads = client.multi(List.of(Op.getData("/m"), Op.getChildren("/a"), Op.getData("/no")));
        check(Arrays.equals(((OpResult.GetDataResult) reads.get(0)).getData(), bytes("2")), "getData in a multi");
        check(((OpResult.GetChildrenResult) reads.get(1)).getChildren().equals(List.of("null")), "children");
        check(((OpResult.ErrorResult) reads.get(2)).getErr() == -101, "an error in a multi");
    }

    private static void watches(ZooKeeper client, ZooKeeper other) throws Exception {
        Events events = new Events();
        client.getData("/a", events, null);
        client.exists("/later", events);
        client.getChildren("/", events);
        other.setData("/java/a", bytes("x"), -1);
        events.expect(EventType.NodeDataChanged, "/a");
        other.create("/java/later", null, OPEN, CreateMode.PERSISTENT);
        Set<EventType> seen = new TreeSet<>();
        for (int number = 0; number < 2; number++) {
            seen.add(events.queue.poll(PATIENCE_SECONDS, TimeUnit.SECONDS).getType());
        }
        check(seen.equals(Set.of(EventType.NodeCreated, EventType.NodeChildrenChanged)), "of a creation: " + seen);
        other.setData("/java/a", bytes("y"), -1);
        check(events.queue.poll(200, TimeUnit.MILLISECONDS) == null, "a watch fires once");

        Events all = new Events();
        client.addWatch("/a", all, AddWatchMode.PERSISTENT_RECURSIVE);
        other.create("/java/a/b", null, OPEN, CreateMode.PERSISTENT);
        other.setData("/java/a/b", bytes("1"), -1);
        other.setData("/java/a/b", bytes("2"), -1);
        other.delete("/java/a/b", -1);
        all.expect(EventType.NodeCreated, "/a/b");
        all.expect(EventType.NodeDataChanged, "/a/b");
        all.expect(EventType.NodeDataChanged, "/a/b");
        all.expect(EventType.NodeDeleted, "/a/b");
        client.removeWatches("/a", all, Watcher.WatcherType.PersistentRecursive, false);
        WatchedEvent removal = all.queue.poll(PATIENCE_SECONDS, TimeUnit.SECONDS); // from the client itself
        check(removal.getType() == EventType.PersistentWatchRemoved, "the client tells of a removal: " + removal);
        other.setData("/java/a", bytes("z"), -1);
        check(all.queue.poll(200, TimeUnit.MILLISECONDS) == null, "a removed watch is silent");
        fails(KeeperException.Code.NOWATCHER,
                () -> client.removeWatches("/a", all, Watcher.WatcherType.Any, false));
    }

    private static void accessLists(ZooKeeper client, ZooKeeper other) throws Exception {
        client.addAuthInfo("digest", bytes("ann:secret"));
        client.create("/private", bytes("x"), ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        fails(KeeperException.Code.NOAUTH, () -> other.getData("/java/private", false, null));
        Stat stat = new Stat();
        List<ACL> acl = client.getACL("/private", stat);
        check(acl.size() == 1 && acl.get(0).getId().getId().startsWith("ann:"), "getACL " + acl);
        check(client.setACL("/private", OPEN, stat.getAversion()).getAversion() == 1, "setACL");
        check(Arrays.equals(other.getData("/java/private", false, null), bytes("x")), "open again");
        fails(KeeperException.Code.INVALIDACL,
                () -> client.create("/none", null, new ArrayList<>(), CreateMode.PERSISTENT));
        check(client.whoAmI().stream().anyMatch(info -> info.getUser().equals("ann")), "whoAmI");
    }

    /** The server is killed and comes back while this client has a session, an ephemeral node and watches. */
    private static void outlive(String address) throws Exception {
        try (ZooKeeper client = connect(address, 30_000)) {
            long session = client.getSessionId();
            client.create("/outlive", bytes("0"), OPEN, CreateMode.PERSISTENT);
            client.create("/outlive/mine", null, OPEN, CreateMode.EPHEMERAL);
            Events data = new Events();
            Events recursive = new Events();
            client.getData("/outlive", data, null);
            client.addWatch("/outlive", recursive, AddWatchMode.PERSISTENT_RECURSIVE);
            System.out.println("ready");
            data.expect(EventType.NodeDataChanged, "/outlive");
            recursive.expect(EventType.NodeDataChanged, "/outlive");
            check(client.getSessionId() == session, "the session went on");
            check(client.exists("/outlive/mine", false).getEphemeralOwner() == session, "its node is there");
        }
    }

    /** Logged in as ann, by the JAAS file that the program was started with. */
    private static void sasl(String address) throws Exception {
        List<ACL> mine = Arrays.asList(new ACL(ZooDefs.Perms.ALL, new Id("sasl", "ann")));
        try (ZooKeeper client = connect(address, 10_000)) {
            client.create("/of-ann", bytes("x"), mine, CreateMode.PERSISTENT);
            check(Arrays.equals(client.getData("/of-ann", false, null), bytes("x")), "her own");
            check(client.whoAmI().stream().anyMatch(info -> info.getAuthScheme().equals("sasl")), "whoAmI");
        }
    }

    private interface Call {
        void run() throws Exception;
    }

    private static void fails(KeeperException.Code code, Call call) throws Exception {
        try {
            call.run();
        } catch (KeeperException error) {
            check(error.code() == code, "expected " + code + ", got " + error.code());
            return;
        }
        throw new IllegalStateException("expected " + code);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
