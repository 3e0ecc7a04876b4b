// Uses go-zookeeper against a server, and ends with a status other than 0 when anything is not as it should be.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const patience = 60 * time.Second

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(address string) error {
	client, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer client.Close()
	other, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer other.Close()
	for _, step := range []func(client, other *zk.Conn) error{nodes, multi, watches, accessLists, locks} {
		if err := step(client, other); err != nil {
			return err
		}
	}
	return nil
}

func check(holds bool, what string, values ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(what+": %v", values...)
}

func nodes(client, _ *zk.Conn) error {
	open := zk.WorldACL(zk.PermAll)
	path, err := client.Create("/go", []byte("1"), 0, open)
	if err := errors.Join(err, check(path == "/go", "create", path)); err != nil {
		return err
	}
	_, err = client.Set("/go", []byte("2"), 7)
	if err := check(errors.Is(err, zk.ErrBadVersion), "a wrong version", err); err != nil {
		return err
	}
	stat, err := client.Set("/go", []byte("2"), 0)
	if err := errors.Join(err, check(stat.Version == 1, "set", stat)); err != nil {
		return err
	}
	data, _, err := client.Get("/go")
	if err := errors.Join(err, check(bytes.Equal(data, []byte("2")), "get", data)); err != nil {
		return err
	}
	there, _, err := client.Exists("/nowhere")
	if err := errors.Join(err, check(!there, "exists")); err != nil {
		return err
	}
	sequential, err := client.Create("/go/n-", nil, zk.FlagSequence|zk.FlagEphemeral, open)
	if err := errors.Join(err, check(strings.HasSuffix(sequential, "-0000000000"), sequential)); err != nil {
		return err
	}
	_, err = client.CreateContainer("/go/box", nil, zk.FlagContainer, open)
	if err != nil {
		return err
	}
	_, err = client.CreateTTL("/go/ttl", nil, zk.FlagTTL, open, time.Minute)
	if err != nil {
		return err
	}
	children, _, err := client.Children("/go")
	return errors.Join(err, check(len(children) == 3, "children", children))
}

func multi(client, _ *zk.Conn) error {
	open := zk.WorldACL(zk.PermAll)
	results, err := client.Multi(
		&zk.CreateRequest{Path: "/go/m", Acl: open}, &zk.SetDataRequest{Path: "/go/m", Data: []byte("x"), Version: 0},
		&zk.CheckVersionRequest{Path: "/go/m", Version: 1})
	if err := errors.Join(err, check(len(results) == 3 && results[0].String == "/go/m", "multi", results)); err != nil {
		return err
	}
	_, err = client.Multi(
		&zk.DeleteRequest{Path: "/go/m", Version: -1}, &zk.CheckVersionRequest{Path: "/go/m", Version: 5})
	if err := check(err != nil, "a multi that must fail"); err != nil {
		return err
	}
	there, _, err := client.Exists("/go/m")
	return errors.Join(err, check(there, "a failed multi changes nothing"))
}

func watches(client, other *zk.Conn) error {
	_, _, changed, err := client.GetW("/go")
	if err != nil {
		return err
	}
	if _, err = other.Set("/go", []byte("3"), -1); err != nil {
		return err
	}
	select {
	case event := <-changed:
		return check(event.Type == zk.EventNodeDataChanged && event.Path == "/go", "event", event)
	case <-time.After(patience):
		return errors.New("no event")
	}
}

func accessLists(client, other *zk.Conn) error {
	if err := client.AddAuth("digest", []byte("ann:secret")); err != nil {
		return err
	}
	if _, err := client.Create("/go/private", nil, 0, zk.DigestACL(zk.PermAll, "ann", "secret")); err != nil {
		return err
	}
	_, _, err := other.Get("/go/private")
	if err := check(errors.Is(err, zk.ErrNoAuth), "a stranger", err); err != nil {
		return err
	}
	_, _, err = client.Get("/go/private")
	return err
}

func locks(client, other *zk.Conn) error {
	open := zk.WorldACL(zk.PermAll)
	first, second := zk.NewLock(client, "/go/lock", open), zk.NewLock(other, "/go/lock", open)
	if err := first.Lock(); err != nil {
		return err
	}
	var waiting sync.WaitGroup
	var got error
	held := make(chan struct{})
	waiting.Add(1)
	go func() {
		defer waiting.Done()
		got = second.Lock()
		close(held)
	}()
	select {
	case <-held:
		return errors.New("two hold one lock")
	case <-time.After(300 * time.Millisecond):
	}
	if err := first.Unlock(); err != nil {
		return err
	}
	waiting.Wait()
	return errors.Join(got, second.Unlock())
}
