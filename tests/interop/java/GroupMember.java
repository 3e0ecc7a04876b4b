import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer of a group with the Java client: BOOTSTRAP GROUP TOPIC STRATEGY. What it tells is that of member.py. */
public final class GroupMember {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", PACKAGE + "RangeAssignor",
        "roundrobin", PACKAGE + "RoundRobinAssignor",
        "sticky", PACKAGE + "StickyAssignor",
        "cooperative-sticky", PACKAGE + "CooperativeStickyAssignor");

    public static void main(String[] arguments) throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings(arguments));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> leave(consumer, closed)));
        consumer.subscribe(List.of(arguments[2]));
        try {
            run(consumer);
        } catch (WakeupException asked) {
            consumer.close();
        } finally {
            closed.countDown();
        }
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        if (arguments[3].equals("uniform")) {  // the new protocol; the broker tells the timeouts
            settings.put("group.protocol", "consumer");
            settings.put("group.remote.assignor", "uniform");
        } else {
            settings.put("partition.assignment.strategy", ASSIGNORS.get(arguments[3]));
            settings.put("session.timeout.ms", "3000");
            settings.put("heartbeat.interval.ms", "500");
        }
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        return settings;
    }

    private static void leave(KafkaConsumer<String, String> consumer, CountDownLatch closed) {
        consumer.wakeup();
        try {
            closed.await();
        } catch (InterruptedException ignored) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(KafkaConsumer<String, String> consumer) throws Exception {
        SortedSet<Integer> last = null;
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            SortedSet<Integer> assigned = new TreeSet<>();
            for (TopicPartition each : consumer.assignment()) {
                assigned.add(each.partition());
            }
            if (!assigned.equals(last)) {
                last = assigned;
                tell(JSON.createObjectNode().set("assigned", JSON.valueToTree(assigned)));
            }
            if (!records.isEmpty()) {
                ArrayNode read = JSON.createArrayNode();
                for (ConsumerRecord<String, String> each : records) {
                    read.addArray().add(each.partition()).add(each.offset()).add(each.value());
                }
                tell(JSON.createObjectNode().set("read", read));
                commit(consumer);
            }
        }
    }

    private static void commit(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            consumer.commitSync();
        } catch (WakeupException asked) {
            throw asked;
        } catch (KafkaException failure) {
            tell(JSON.createObjectNode().put("commit_failed", failure.toString()));
        }
    }

    private static void tell(ObjectNode what) throws Exception {
        System.out.println(JSON.writeValueAsString(what));
        System.out.flush();
    }
}
