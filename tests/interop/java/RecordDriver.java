import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes and reads records with the Java client. The line protocol is that of drivers.py: a JSON object per line,
 * the request first, keys and values in base64.
 */
public final class RecordDriver {
    private static final long PATIENCE_MS = 45_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintWriter out =
        new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JsonNode request = JSON.readTree(in.readLine());
        RecordDriver driver = new RecordDriver();
        switch (arguments[0]) {
            case "produce" -> driver.produce(request, in);
            case "consume" -> driver.consume(request);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        driver.out.flush();
    }

    private void produce(JsonNode request, BufferedReader in) throws Exception {
        String topic = request.get("topic").asText();
        Integer partition = request.get("partition").isNull() ? null : request.get("partition").asInt();
        int acks = request.get("acks").asInt();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(producerSettings(request))) {
            List<Future<RecordMetadata>> answers = new ArrayList<>();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                answers.add(producer.send(producerRecord(topic, partition, JSON.readTree(line))));
            }
            producer.flush();
            for (Future<RecordMetadata> answer : answers) {
                RecordMetadata metadata = answer.get();
                ObjectNode receipt = JSON.createObjectNode();
                if (acks != 0) {
                    receipt.put("offset", metadata.offset()).put("timestamp_ms", metadata.timestamp());
                }
                out.println(receipt);
            }
        }
    }

    private static Properties producerSettings(JsonNode request) {
        boolean manyRequests = request.get("many_requests").asBoolean();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        settings.put("acks", request.get("acks").asText());
        settings.put("enable.idempotence", request.get("idempotent").asText());
        settings.put("compression.type", request.get("codec").asText());
        settings.put("max.request.size", 12 * 1024 * 1024);
        settings.put("batch.size", manyRequests ? 100 : 16_384);
        settings.put("delivery.timeout.ms", (int) PATIENCE_MS);
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        return settings;
    }

    private static ProducerRecord<byte[], byte[]> producerRecord(String topic, Integer partition, JsonNode line)
            throws IOException {
        Long timestamp = line.get("timestamp_ms").isNull() ? null : line.get("timestamp_ms").asLong();
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, partition, timestamp, bytes(line.get("key")), bytes(line.get("value")));
        for (JsonNode header : line.get("headers")) {
            record.headers().add(header.get(0).asText(), bytes(header.get(1)));
        }
        return record;
    }

    private void consume(JsonNode request) {
        String topic = request.get("topic").asText();
        Map<Integer, Integer> missing = new HashMap<>();
        request.get("counts").properties().forEach(
            entry -> missing.put(Integer.valueOf(entry.getKey()), entry.getValue().asInt()));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        settings.put("isolation.level", "read_committed");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> places = missing.keySet().stream().map(p -> new TopicPartition(topic, p)).toList();
            consumer.assign(places);
            consumer.seekToBeginning(places);
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (System.currentTimeMillis() < deadline && missing.values().stream().anyMatch(n -> n > 0)) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    missing.merge(record.partition(), -1, Integer::sum);
                    out.println(line(record));
                }
            }
        }
    }

    private static ObjectNode line(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode line = JSON.createObjectNode();
        line.put("partition", record.partition());
        line.put("offset", record.offset());
        line.put("timestamp_ms", record.timestamp());
        line.put("timestamp_type", record.timestampType() == TimestampType.LOG_APPEND_TIME ? "append" : "create");
        line.put("key", record.key());
        line.put("value", record.value());
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return line;
    }

    private static byte[] bytes(JsonNode base64) throws IOException {
        return base64.isNull() ? null : base64.binaryValue();
    }
}
