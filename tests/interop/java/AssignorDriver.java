import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** How the Java client's assignors share partitions: groups as JSON lines in, what each member gets out. */
public final class AssignorDriver {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(JSON.readTree(line)));
        }
    }

    private static String answer(JsonNode group) throws Exception {
        GroupSubscription members = members(group.get("members"));
        ConsumerPartitionAssignor assignor = assignor(group.get("assignor").asText());
        ObjectNode answer = JSON.createObjectNode();
        assignor.assign(cluster(group), members).groupAssignment().forEach((member, assignment) -> {
            ArrayNode targets = answer.putArray(member);
            for (TopicPartition each : assignment.partitions()) {
                targets.addArray().add(each.topic()).add(each.partition());
            }
        });
        return JSON.writeValueAsString(answer);
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    /** Subscriptions as members send them: base64 of what a JoinGroup carries. */
    private static GroupSubscription members(JsonNode members) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        members.properties().forEach(each -> {
            ByteBuffer sent = ByteBuffer.wrap(Base64.getDecoder().decode(each.getValue().asText()));
            subscriptions.put(each.getKey(), ConsumerProtocol.deserializeSubscription(sent));
        });
        return new GroupSubscription(subscriptions);
    }

    /** "racks": one for each broker, or null; "topics": the brokers of each partition. */
    private static Cluster cluster(JsonNode group) {
        List<Node> nodes = new ArrayList<>();
        for (JsonNode rack : group.get("racks")) {
            nodes.add(new Node(nodes.size(), "host", 9092, rack.isNull() ? null : rack.asText()));
        }
        List<PartitionInfo> partitions = new ArrayList<>();
        group.get("topics").properties().forEach(topic -> {
            int index = 0;
            for (JsonNode replicas : topic.getValue()) {
                List<Node> holders = new ArrayList<>();
                replicas.forEach(each -> holders.add(nodes.get(each.asInt())));
                Node[] all = holders.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), index++, all[0], all, all));
            }
        });
        Set<String> none = new HashSet<>();
        return new Cluster("cluster", nodes, partitions, none, none, null);
    }
}
