// Writes and reads records with franz-go. The line protocol is that of drivers.py: a JSON object per line, the
// request first, keys and values in base64.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 45 * time.Second

type request struct {
	Bootstrap    string        `json:"bootstrap"`
	Topic        string        `json:"topic"`
	Partition    int32         `json:"partition"`
	Codec        string        `json:"codec"`
	Acks         int           `json:"acks"`
	Idempotent   bool          `json:"idempotent"`
	ManyRequests bool          `json:"many_requests"`
	Counts       map[int32]int `json:"counts"`
}

type line struct {
	Partition     int32        `json:"partition"`
	Offset        int64        `json:"offset"`
	TimestampMs   *int64       `json:"timestamp_ms"`
	TimestampType string       `json:"timestamp_type"`
	Key           *string      `json:"key"`
	Value         *string      `json:"value"`
	Headers       [][2]*string `json:"headers"`
}

// franz-go does not pass on the append time that a broker acknowledges.
type receipt struct {
	Offset *int64 `json:"offset"`
}

func main() {
	programs := map[string]func([]string) error{"member": member, "chain": chain, "zombies": zombies}
	act := func([]string) error { return run(os.Args[1]) }
	if program, ok := programs[os.Args[1]]; ok {
		act = program
	}
	if err := act(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(command string) error {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	var asked request
	if err := in.Decode(&asked); err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer buffered.Flush()
	out := json.NewEncoder(buffered)
	switch command {
	case "produce":
		return produce(asked, in, out)
	case "consume":
		return consume(asked, out)
	}
	return fmt.Errorf("unknown command %q", command)
}

func produce(asked request, in *json.Decoder, out *json.Encoder) error {
	client, err := kgo.NewClient(producerOptions(asked)...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var records []*kgo.Record
	failures := make(chan error, 1)
	for in.More() {
		var read line
		if err := in.Decode(&read); err != nil {
			return err
		}
		record, err := read.record(asked)
		if err != nil {
			return err
		}
		records = append(records, record)
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failures <- err:
				default:
				}
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failures:
		return err
	default:
	}
	for _, record := range records {
		var answer receipt
		if asked.Acks != 0 {
			answer.Offset = &record.Offset
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func producerOptions(asked request) []kgo.Opt {
	codecs := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	acks := map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}
	options := []kgo.Opt{
		kgo.SeedBrokers(asked.Bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[asked.Codec]),
		kgo.RequiredAcks(acks[asked.Acks]),
	}
	if asked.ManyRequests {
		options = append(options, kgo.ProducerBatchMaxBytes(1<<10), kgo.ProducerLinger(0))
	} else {
		options = append(options, kgo.ProducerBatchMaxBytes(12<<20))
	}
	if !asked.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	return options
}

func consume(asked request, out *json.Encoder) error {
	starts := make(map[int32]kgo.Offset)
	for partition := range asked.Counts {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(asked.Bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{asked.Topic: starts}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for missing(asked.Counts) && ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		for _, failed := range fetches.Errors() {
			return fmt.Errorf("partition %d: %w", failed.Partition, failed.Err)
		}
		for _, record := range fetches.Records() {
			asked.Counts[record.Partition]--
			if err := out.Encode(lineOf(record)); err != nil {
				return err
			}
		}
	}
	return nil
}

func missing(counts map[int32]int) bool {
	for _, count := range counts {
		if count > 0 {
			return true
		}
	}
	return false
}

func (read *line) record(asked request) (*kgo.Record, error) {
	record := &kgo.Record{Topic: asked.Topic, Partition: asked.Partition}
	var err error
	if record.Key, err = fromBase64(read.Key); err != nil {
		return nil, err
	}
	if record.Value, err = fromBase64(read.Value); err != nil {
		return nil, err
	}
	if read.TimestampMs != nil {
		record.Timestamp = time.UnixMilli(*read.TimestampMs)
	}
	for _, header := range read.Headers {
		value, err := fromBase64(header[1])
		if err != nil {
			return nil, err
		}
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: *header[0], Value: value})
	}
	return record, nil
}

func lineOf(record *kgo.Record) line {
	timestamp := record.Timestamp.UnixMilli()
	kind := "create"
	if record.Attrs.TimestampType() == 1 {
		kind = "append"
	}
	headers := [][2]*string{}
	for _, header := range record.Headers {
		name := header.Key
		headers = append(headers, [2]*string{&name, toBase64(header.Value)})
	}
	return line{
		Partition:     record.Partition,
		Offset:        record.Offset,
		TimestampMs:   &timestamp,
		TimestampType: kind,
		Key:           toBase64(record.Key),
		Value:         toBase64(record.Value),
		Headers:       headers,
	}
}

// A null and an empty byte string are two things: nil and a slice without elements.
func fromBase64(text *string) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(*text)
	if decoded == nil {
		decoded = []byte{}
	}
	return decoded, err
}

func toBase64(data []byte) *string {
	if data == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(data)
	return &text
}
