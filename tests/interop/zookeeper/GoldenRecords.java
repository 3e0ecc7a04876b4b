import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import org.apache.jute.BinaryOutputArchive;
import org.apache.jute.Record;
import org.apache.zookeeper.MultiOperationRecord;
import org.apache.zookeeper.MultiResponse;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.proto.*;

/** Prints records as ZooKeeper's own classes serialise them: a name and the bytes in hexadecimal on each line. */
public final class GoldenRecords {
    private static final byte[] DATA = {0, 1, (byte) 0xff};

    public static void main(String[] arguments) throws IOException {
        List<ACL> acl = Arrays.asList(
                new ACL(ZooDefs.Perms.ALL, new Id("world", "anyone")), new ACL(5, new Id("digest", "ann:x=")));
        Stat stat = new Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
        List<String> texts = Arrays.asList("a", "\u00fc\u65e5");
        List<String> none = Collections.emptyList();
        print("connect request", new ConnectRequest(0, 77, 10_000, 12345678901L, DATA, false));
        print("connect response", new ConnectResponse(0, 10_000, 12345678901L, DATA, false));
        print("request header", new RequestHeader(7, 4));
        print("reply header", new ReplyHeader(-1, 1L << 40, -101));
        print("create", new CreateRequest("/a/b", DATA, acl, 3));
        print("create without data", new CreateRequest("/a", null, acl, 0));
        print("create with ttl", new CreateTTLRequest("/a", DATA, acl, 5, 1000));
        print("delete", new DeleteRequest("/a", -1));
        print("exists", new ExistsRequest("/a", true));
        print("get data", new GetDataRequest("/a", false));
        print("set data", new SetDataRequest("/a", DATA, 4));
        print("get acl", new GetACLRequest("/a"));
        print("set acl", new SetACLRequest("/a", acl, 2));
        print("get children", new GetChildren2Request("/a", true));
        print("sync", new SyncRequest("/a"));
        print("check", new CheckVersionRequest("/a", 9));
        print("set watches", new SetWatches(5, texts, none, texts));
        print("set watches 2", new SetWatches2(5, texts, none, texts, none, texts));
        print("add watch", new AddWatchRequest("/a", 1));
        print("remove watches", new RemoveWatchesRequest("/a", 3));
        print("auth", new AuthPacket(0, "digest", DATA));
        print("sasl", new GetSASLRequest(DATA));
        print("ephemerals", new GetEphemeralsRequest("/a"));
        print("created", new CreateResponse("/a"));
        print("created with stat", new Create2Response("/a", stat));
        print("stat", new SetDataResponse(stat));
        print("data", new GetDataResponse(DATA, stat));
        print("acl", new GetACLResponse(acl, stat));
        print("children", new GetChildrenResponse(texts));
        print("children with stat", new GetChildren2Response(texts, stat));
        print("count", new GetAllChildrenNumberResponse(42));
        print("who am i", new WhoAmIResponse(Arrays.asList(new ClientInfo("ip", "127.0.0.1"))));
        print("event", new WatcherEvent(3, 3, "/a"));
        print("multi", new MultiOperationRecord(Arrays.asList(
                Op.create("/a", DATA, acl, CreateMode.PERSISTENT), Op.setData("/a", DATA, 1), Op.check("/a", 2),
                Op.delete("/a", 3))));
        MultiResponse results = new MultiResponse();
        results.add(new OpResult.CreateResult("/a"));
        results.add(new OpResult.CreateResult("/b", stat));
        results.add(new OpResult.SetDataResult(stat));
        results.add(new OpResult.CheckResult());
        results.add(new OpResult.DeleteResult());
        results.add(new OpResult.ErrorResult(-101));
        print("multi results", results);
    }

    private static void print(String name, Record record) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        record.serialize(BinaryOutputArchive.getArchive(bytes), "record");
        System.out.println(name + "\t" + HexFormat.of().formatHex(bytes.toByteArray()));
    }
}
