package candidate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// redisOf serves one who connects as a Redis does whose lock is free, and later taken by another.
func redisOf(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(c net.Conn) error {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			var words []string
			var n, size int
			if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
				return err
			}
			for range n {
				if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
					return err
				}
				word := make([]byte, size+len("\r\n"))
				if _, err := io.ReadFull(in, word); err != nil {
					return err
				}
				words = append(words, string(word[:size]))
			}
			answer := "-ERR unknown command\r\n"
			switch strings.ToLower(words[0]) {
			case "set":
				answer = "+OK\r\n"
			case "evalsha": // whoever extends or unlocks is not the one who has it
				answer = ":0\r\n"
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return err
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// A leader whom Extend tells that another one has the lock acts no more, although its time is not over.
func TestRedsyncTaken(t *testing.T) {
	const session = 3 * time.Second // it extends after a third
	begin := time.Now()
	candidates, err := redsyncMutex(t.Context(), Settings{Addresses: []string{redisOf(t)}, Session: session})
	if err != nil {
		t.Fatal(err)
	}
	term, err := candidates("e")(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last, _ := work(begin, term.Leads, nil)
	if acted := last.Sub(begin); acted > session*9/10 {
		t.Errorf("it acted for %v, until its time was over", acted)
	}
	if err := term.Release(true); err != nil {
		t.Error(err)
	}
}
