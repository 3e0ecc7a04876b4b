package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// What a member owns, told whenever it changes.
type ownership struct {
	sync.Mutex
	owned []int32
	out   *json.Encoder
}

func (o *ownership) change(added, removed []int32) {
	o.Lock()
	defer o.Unlock()
	o.owned = slices.DeleteFunc(o.owned, func(each int32) bool { return slices.Contains(removed, each) })
	o.owned = append(o.owned, added...)
	slices.Sort(o.owned)
	o.tell(map[string]any{"assigned": append([]int32{}, o.owned...)})
}

func (o *ownership) tell(what map[string]any) {
	_ = o.out.Encode(what)
}

// A consumer of a group: BOOTSTRAP GROUP TOPIC STRATEGY. What it tells is that of member.py.
func member(arguments []string) error {
	bootstrap, group, topic, strategy := arguments[0], arguments[1], arguments[2], arguments[3]
	owned := &ownership{out: json.NewEncoder(os.Stdout)}
	gained := func(_ context.Context, _ *kgo.Client, got map[string][]int32) { owned.change(got[topic], nil) }
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { owned.change(nil, gone[topic]) }
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.Balancers(balancers[strategy]),
		kgo.SessionTimeout(3*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(gained),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	)
	if err != nil {
		return err
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for asked.Err() == nil {
		fetches := client.PollFetches(asked)
		read := [][3]any{}
		fetches.EachRecord(func(record *kgo.Record) {
			read = append(read, [3]any{record.Partition, record.Offset, string(record.Value)})
		})
		if len(read) == 0 {
			continue
		}
		owned.Lock()
		owned.tell(map[string]any{"read": read})
		owned.Unlock()
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			owned.Lock()
			owned.tell(map[string]any{"commit_failed": err.Error()})
			owned.Unlock()
		}
	}
	client.Close()
	return nil
}
