package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsPerTransaction = 20

// The worker of exactly_once_chain.py with franz-go: BOOTSTRAP INPUT OUTPUT PARTITIONS. With NAME PROTOCOL behind
// them, one of the two of exactly_once_pair.py, a dynamic member whose partitions go to the other when it dies.
func chain(arguments []string) error {
	bootstrap, source, target := arguments[0], arguments[1], arguments[2]
	partitions, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	identity := []kgo.Opt{kgo.InstanceID("worker"), kgo.TransactionalID("chain")}
	if len(arguments) > 4 {
		identity = []kgo.Opt{
			kgo.SessionTimeout(3 * time.Second),
			kgo.HeartbeatInterval(500 * time.Millisecond),
			kgo.TransactionalID("chain-" + arguments[4]),
			kgo.TransactionTimeout(10 * time.Second),
		}
	}
	for { // a session that failed for good is replaced, as an application would
		session, err := kgo.NewGroupTransactSession(append([]kgo.Opt{
			kgo.SeedBrokers(bootstrap),
			kgo.ConsumerGroup("chain"),
			kgo.ConsumeTopics(source),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RequireStableFetchOffsets(),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		}, identity...)...)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "begins anew:", transform(session, target, partitions))
		session.Close()
	}
}

func transform(session *kgo.GroupTransactSession, target string, partitions int) error {
	ctx := context.Background()
	// Ends what the predecessor left open, and with it the wait for offsets that it left pending.
	if _, _, err := session.Client().ProducerID(ctx); err != nil {
		return err
	}
	for {
		records := session.PollRecords(ctx, recordsPerTransaction).Records()
		if len(records) == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return err
		}
		failed := kgo.AbortingFirstErrPromise(session.Client())
		for _, record := range records {
			number, err := strconv.Atoi(string(record.Value))
			if err != nil {
				return err
			}
			doubled := &kgo.Record{Topic: target, Partition: int32(number % partitions), Value: []byte(strconv.Itoa(2 * number))}
			session.Produce(ctx, doubled, failed.Promise())
		}
		committed, err := session.End(ctx, kgo.TransactionEndTry(failed.Err() == nil))
		if err != nil {
			return err
		}
		if committed {
			fmt.Println("committed")
		}
	}
}

// Producers that a successor has fenced: BOOTSTRAP TOPIC. Prints what stopped each, as ZombieProducer.java does.
func zombies(arguments []string) error {
	bootstrap, topic := arguments[0], arguments[1]
	attempts := []struct {
		what string
		try  func(context.Context, *kgo.Client) error
	}{
		{"sends", func(ctx context.Context, zombie *kgo.Client) error { return send(ctx, zombie, topic, "zombie") }},
		{"commits", func(ctx context.Context, zombie *kgo.Client) error {
			return zombie.EndTransaction(ctx, kgo.TryCommit)
		}},
		{"aborts", func(ctx context.Context, zombie *kgo.Client) error {
			return zombie.EndTransaction(ctx, kgo.TryAbort)
		}},
	}
	for _, attempt := range attempts {
		failure, err := meet(bootstrap, topic, topic+"-"+attempt.what, attempt.try)
		if err != nil {
			return err
		}
		fmt.Println(attempt.what, failure)
	}
	return nil
}

func meet(bootstrap, topic, id string, attempt func(context.Context, *kgo.Client) error) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var clients [2]*kgo.Client
	for at := range clients {
		client, err := kgo.NewClient(
			kgo.SeedBrokers(bootstrap),
			kgo.TransactionalID(id),
			kgo.TransactionTimeout(10*time.Second),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)
		if err != nil {
			return "", err
		}
		defer client.Close()
		clients[at] = client
	}
	zombie, successor := clients[0], clients[1]
	if err := begin(ctx, zombie, topic, "zombie"); err != nil {
		return "", err
	}
	if err := begin(ctx, successor, topic, "successor"); err != nil {
		return "", err
	}
	if err := successor.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return "", err
	}
	failure := attempt(ctx, zombie)
	var known *kerr.Error
	if errors.As(failure, &known) {
		return known.Message, nil
	}
	return fmt.Sprint(failure), nil
}

func begin(ctx context.Context, client *kgo.Client, topic, value string) error {
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	return send(ctx, client, topic, value)
}

func send(ctx context.Context, client *kgo.Client, topic, value string) error {
	return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr()
}
