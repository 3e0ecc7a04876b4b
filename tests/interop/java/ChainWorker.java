import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The worker of exactly_once_chain.py with the Java client: BOOTSTRAP INPUT OUTPUT PARTITIONS. With NAME PROTOCOL
 * behind them, one of the two of exactly_once_pair.py.
 */
public final class ChainWorker {
    public static void main(String[] arguments) {
        int partitions = Integer.parseInt(arguments[3]);
        Properties ofConsumer = consumerSettings(arguments[0]);
        Properties ofProducer = producerSettings(arguments[0]);
        if (arguments.length > 4) {
            beOneOfTwo(ofConsumer, ofProducer, arguments[4], arguments[5]);
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(ofConsumer)) {
            consumer.subscribe(List.of(arguments[1]));
            while (true) { // a producer that failed for good is replaced, as an application would
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(ofProducer)) {
                    run(consumer, producer, arguments[2], partitions);
                } catch (KafkaException | IllegalStateException failure) {
                    System.err.println("begins anew: " + failure);
                }
            }
        }
    }

    private static Properties consumerSettings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "chain");
        settings.put("group.instance.id", "worker");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        settings.put("max.poll.records", "20");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        return settings;
    }

    /** A dynamic member: its partitions go to the other when it dies. */
    private static void beOneOfTwo(Properties ofConsumer, Properties ofProducer, String name, String protocol) {
        ofConsumer.remove("group.instance.id");
        ofConsumer.put("group.protocol", protocol);
        if (protocol.equals("classic")) {
            ofConsumer.put("session.timeout.ms", "3000");
            ofConsumer.put("heartbeat.interval.ms", "500");
        }
        ofProducer.put("transactional.id", "chain-" + name);
        ofProducer.put("transaction.timeout.ms", "10000");
    }

    static Properties producerSettings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", "chain");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        return settings;
    }

    private static void run(
            KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer, String target, int partitions) {
        producer.initTransactions();
        rewind(consumer);
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) {
                continue;
            }
            producer.beginTransaction();
            try {
                for (ConsumerRecord<String, String> each : records) {
                    int number = Integer.parseInt(each.value());
                    String doubled = Integer.toString(2 * number);
                    producer.send(new ProducerRecord<>(target, number % partitions, null, doubled));
                }
                producer.sendOffsetsToTransaction(positions(consumer), consumer.groupMetadata());
                producer.commitTransaction();
                System.out.println("committed");
            } catch (KafkaException failure) {
                System.err.println("aborts: " + failure);
                producer.abortTransaction();
                rewind(consumer);
            }
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> positions(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition place : consumer.assignment()) {
            positions.put(place, new OffsetAndMetadata(consumer.position(place)));
        }
        return positions;
    }

    /** Back to what is committed. */
    private static void rewind(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        committed.forEach((place, offset) -> consumer.seek(place, offset == null ? 0 : offset.offset()));
    }
}
