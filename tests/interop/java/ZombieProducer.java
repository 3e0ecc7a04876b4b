import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;

/**
 * Producers that a successor has fenced: BOOTSTRAP TOPIC. Prints what stopped each: one that sends, one that
 * commits, one that aborts. Each successor commits a record.
 */
public final class ZombieProducer {
    private interface Attempt {
        void by(KafkaProducer<String, String> zombie, String topic) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        meet(arguments, "sends", (zombie, topic) -> zombie.send(new ProducerRecord<>(topic, 0, null, "zombie")).get());
        meet(arguments, "commits", (zombie, topic) -> zombie.commitTransaction());
        meet(arguments, "aborts", (zombie, topic) -> zombie.abortTransaction());
    }

    private static void meet(String[] arguments, String what, Attempt attempt) throws Exception {
        Properties settings = ChainWorker.producerSettings(arguments[0]);
        settings.put("transactional.id", arguments[1] + "-" + what);
        String topic = arguments[1];
        try (KafkaProducer<String, String> zombie = new KafkaProducer<>(settings);
                KafkaProducer<String, String> successor = new KafkaProducer<>(settings)) {
            zombie.initTransactions();
            zombie.beginTransaction();
            zombie.send(new ProducerRecord<>(topic, 0, null, "zombie")).get();
            successor.initTransactions();
            successor.beginTransaction();
            successor.send(new ProducerRecord<>(topic, 0, null, "successor"));
            successor.commitTransaction();
            System.out.println(what + " " + failure(zombie, topic, attempt));
        }
    }

    private static String failure(KafkaProducer<String, String> zombie, String topic, Attempt attempt) throws Exception {
        try {
            attempt.by(zombie, topic);
            return "nothing";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } catch (KafkaException failed) {
            return failed.getClass().getSimpleName();
        }
    }
}
