package coordtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// fourLetterTimeout bounds a question whose context has no deadline: a server that
// is paused takes the connection and never answers.
const fourLetterTimeout = 5 * time.Second

// FourLetter asks the ZooKeeper server at addr with one of its four-letter
// commands, such as "mntr", and returns the whole answer
// (https://zookeeper.apache.org/doc/r3.8.0/zookeeperAdmin.html#sc_4lw).
func FourLetter(ctx context.Context, addr, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fourLetterTimeout)
	defer cancel()
	fail := func(err error) (string, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("ask %s of %s: %w", command, addr, err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	if _, err := io.WriteString(conn, command); err != nil {
		return fail(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return fail(err)
	}
	return string(answer), nil
}

// Watches are the watches of one ZooKeeper server by path: the ids of the sessions
// that watch it, as in wchp. Watches on a node's data and existence count, watches
// on its children do not.
type Watches map[string][]int64

// ParseWatches reads the answer to wchp.
func ParseWatches(wchp string) (Watches, error) {
	w := make(Watches)
	path := ""
	for line := range strings.Lines(wchp) {
		line = strings.TrimRight(line, "\r\n")
		id, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "":
		case !indented && strings.HasPrefix(line, "/"):
			path = line
			w[path] = nil
		case indented && path != "":
			// A session id is an unsigned number here and a signed one elsewhere.
			n, err := strconv.ParseUint(strings.TrimPrefix(id, "0x"), 16, 64)
			if err != nil {
				return nil, fmt.Errorf("read wchp: line %q is not a session id", line)
			}
			w[path] = append(w[path], int64(n))
		default:
			return nil, fmt.Errorf("read wchp: line %q is neither a path nor a session id", line)
		}
	}
	return w, nil
}

// WatchSummary is the answer to wchs.
type WatchSummary struct {
	Connections int // that watch anything
	Paths       int // that are watched
	Watches     int
}

var wchsPattern = regexp.MustCompile(`^(\d+) connections watching (\d+) paths\s+Total watches:(\d+)\s*$`)

// ParseWatchSummary reads the answer to wchs.
func ParseWatchSummary(wchs string) (WatchSummary, error) {
	m := wchsPattern.FindStringSubmatch(wchs)
	if m == nil {
		return WatchSummary{}, fmt.Errorf("read wchs: %q has another form", wchs)
	}
	var n [3]int
	for i := range n {
		v, err := strconv.Atoi(m[i+1])
		if err != nil {
			return WatchSummary{}, fmt.Errorf("read wchs: %w", err)
		}
		n[i] = v
	}
	return WatchSummary{Connections: n[0], Paths: n[1], Watches: n[2]}, nil
}

// ParseMonitor reads the answer to mntr: the server's figures by name, such as
// zk_watch_count.
func ParseMonitor(mntr string) (map[string]string, error) {
	m := make(map[string]string)
	for line := range strings.Lines(mntr) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("read mntr: line %q is not a name and a value", line)
		}
		m[name] = value
	}
	return m, nil
}
