import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Takes one topic through its life with the Java AdminClient and prints, as one JSON object, what each step showed.
 *
 * <p>The topic is given with ten records in partition 0 of its three, written by the caller.
 */
public final class AdminDriver {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Admin admin;
    private final String topic;
    private final ConfigResource resource;
    private final TopicPartition first;
    private final ObjectNode shown = JSON.createObjectNode();

    private AdminDriver(Admin admin, String topic) {
        this.admin = admin;
        this.topic = topic;
        this.resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        this.first = new TopicPartition(topic, 0);
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[1]))) {
            AdminDriver driver = new AdminDriver(admin, arguments[2]);
            switch (arguments[0]) {
                case "create" -> driver.create();
                case "administer" -> driver.administer();
                default -> throw new IllegalArgumentException(arguments[0]);
            }
            System.out.println(driver.shown);
        }
    }

    private void create() throws Exception {
        NewTopic plain = new NewTopic(topic, 3, (short) 1).configs(Map.of("segment.bytes", "2000000"));
        var created = admin.createTopics(List.of(plain));
        created.all().get();
        shown.put("partitions", created.numPartitions(topic).get());
        shown.put("replication_factor", created.replicationFactor(topic).get());
        shown.put("topic_id", created.topicId(topic).get().toString());
        shown.put("segment_bytes", created.config(topic).get().get("segment.bytes").value());
        shown.put("existing", refusal(() -> admin.createTopics(List.of(plain)).all().get()));
        NewTopic badName = new NewTopic("bad/name", 1, (short) 1);
        shown.put("bad_name", refusal(() -> admin.createTopics(List.of(badName)).all().get()));
        NewTopic badConfig = new NewTopic(topic + "-x", 1, (short) 1).configs(Map.of("retention.ms", "soon"));
        shown.put("bad_config", refusal(() -> admin.createTopics(List.of(badConfig)).all().get()));
        NewTopic wide = new NewTopic(topic + "-x", 1, (short) 5);
        shown.put("too_many_replicas", refusal(() -> admin.createTopics(List.of(wide)).all().get()));
        NewTopic onlyChecked = new NewTopic(topic + "-y", 1, (short) 1);
        admin.createTopics(List.of(onlyChecked), new CreateTopicsOptions().validateOnly(true)).all().get();
        Set<String> names = admin.listTopics().names().get();
        shown.put("listed", names.contains(topic));
        shown.put("validated_is_listed", names.contains(topic + "-y"));
    }

    private void administer() throws Exception {
        describe();
        configs();
        offsets();
        cluster();
        grow();
        delete();
    }

    private void describe() throws Exception {
        TopicDescription description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        shown.put("described_id", description.topicId().toString());
        shown.put("described_internal", description.isInternal());
        ObjectNode partitions = shown.putObject("described_partitions");
        description.partitions().forEach(
            p -> partitions.put(String.valueOf(p.partition()), p.leader().id() + " of " + p.replicas().size()
                + " in sync " + p.isr().size()));
        var byId = admin.describeTopics(
            TopicCollection.ofTopicIds(List.of(description.topicId()))).allTopicIds().get();
        shown.put("described_by_id", byId.get(description.topicId()).name());
    }

    private void configs() throws Exception {
        shown.put("source_before", entry("segment.bytes").source().name());
        shown.put("retention_source_before", entry("retention.ms").source().name());
        alter(new AlterConfigOp(new ConfigEntry("retention.ms", "777777"), OpType.SET));
        alter(new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), OpType.APPEND));
        alter(new AlterConfigOp(new ConfigEntry("segment.bytes", ""), OpType.DELETE));
        String wrong = refusal(() -> alter(new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), OpType.SET)));
        shown.put("wrong_config", wrong);
        waitFor(() -> entry("segment.bytes").source() == ConfigEntry.ConfigSource.DEFAULT_CONFIG);
        shown.put("retention_after", entry("retention.ms").value());
        shown.put("policy_after", entry("cleanup.policy").value());
        shown.put("segment_bytes_after", entry("segment.bytes").value());
    }

    private ConfigEntry entry(String name) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name);
    }

    private Void alter(AlterConfigOp operation) throws Exception {
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(operation))).all().get();
    }

    private void offsets() throws Exception {
        shown.put("earliest", offset(OffsetSpec.earliest()).offset());
        shown.put("latest", offset(OffsetSpec.latest()).offset());
        ListOffsetsResultInfo newest = offset(OffsetSpec.maxTimestamp());
        shown.put("newest", newest.offset());
        shown.put("newest_timestamp_ms", newest.timestamp());
        shown.put("at_newest", offset(OffsetSpec.forTimestamp(newest.timestamp())).offset());
        shown.put("after_newest", offset(OffsetSpec.forTimestamp(newest.timestamp() + 1)).offset());
        shown.put("earliest_local", offset(OffsetSpec.earliestLocal()).offset());
        var deleted = admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(4)));
        shown.put("low_watermark", deleted.lowWatermarks().get(first).get().lowWatermark());
        shown.put("earliest_after_deletion", offset(OffsetSpec.earliest()).offset());
        shown.put("beyond_the_end", refusal(
            () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(99))).all().get()));
    }

    private ListOffsetsResultInfo offset(OffsetSpec of) throws Exception {
        return admin.listOffsets(Map.of(first, of)).partitionResult(first).get();
    }

    private void cluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        shown.put("cluster_id", cluster.clusterId().get());
        shown.put("controller", cluster.controller().get().id());
        ObjectNode nodes = shown.putObject("nodes");
        cluster.nodes().get().forEach(node -> nodes.put(String.valueOf(node.id()), node.host() + ":" + node.port()));
        int broker = cluster.nodes().get().iterator().next().id();
        Map<Integer, Long> sizes = new HashMap<>();
        for (LogDirDescription directory :
                admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker).values()) {
            directory.replicaInfos().forEach((place, info) -> {
                if (place.topic().equals(topic)) {
                    sizes.put(place.partition(), info.size());
                }
            });
        }
        ObjectNode logDirs = shown.putObject("log_sizes");
        sizes.forEach((partition, size) -> logDirs.put(String.valueOf(partition), size));
        ConfigResource brokerResource = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(broker));
        shown.put("broker_message_max_bytes",
            admin.describeConfigs(List.of(brokerResource)).all().get().get(brokerResource)
                .get("message.max.bytes").value());
        shown.put("lists_topic_resources", admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC),
            new ListConfigResourcesOptions()).all().get().contains(resource));
    }

    private void grow() throws Exception {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        waitFor(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 5);
        shown.put("shrink", refusal(
            () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get()));
    }

    private void delete() throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        waitFor(() -> !admin.listTopics().names().get().contains(topic));
        shown.put("deleted_twice", refusal(() -> admin.deleteTopics(List.of(topic)).all().get()));
        shown.put("described_after_deletion", refusal(
            () -> admin.describeTopics(List.of(topic)).allTopicNames().get()));
    }

    /** The name of the error with which the broker refused, or "accepted". */
    private static String refusal(Callable<?> call) throws Exception {
        try {
            call.call();
            return "accepted";
        } catch (ExecutionException failure) {
            return failure.getCause().getClass().getSimpleName();
        }
    }

    /** Metadata may follow an acknowledged change a little later. */
    private static void waitFor(Callable<Boolean> holds) throws Exception {
        long deadline = System.currentTimeMillis() + 10_000;
        while (!holds.call()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("not within ten seconds");
            }
            Thread.sleep(50);
        }
    }
}
