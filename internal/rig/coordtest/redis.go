package coordtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// redisStart bounds the start of a Redis, which takes a tenth of a second.
const redisStart = time.Minute

// RedisProgram returns the path of redis-server, or of valkey-server, if one is in PATH.
func RedisProgram() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is in PATH; apt-get install redis-server")
}

// A Redis is one server with its default settings. This project has no elections on it: it is there for others to be measured. Its methods
// are safe for concurrent use.
type Redis struct {
	Cluster
	program string
}

// StartRedis starts a Redis and blocks until it serves. The caller stops it.
func StartRedis(ctx context.Context) (*Redis, error) {
	program, err := RedisProgram()
	if err != nil {
		return nil, err
	}
	return startCoordinator(ctx, "Redis", redisStart, func() *Redis { return &Redis{program: program} })
}

func (r *Redis) create() (err error) {
	if r.dir, err = os.MkdirTemp("", "redis-"); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	data := filepath.Join(r.dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(loopback(ports[0]))
	if err != nil {
		return err
	}
	r.servers = []*Server{{
		addr: loopback(ports[0]),
		log:  filepath.Join(r.dir, "log"),
		spec: spec{
			argv: []string{r.program, "--bind", "127.0.0.1", "--port", port, "--dir", data},
			data: data,
			reset: func() error {
				return errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o755))
			},
			probe:     func(ctx context.Context, addr string) error { _, err := RedisSays(ctx, addr, "PING"); return err },
			portTaken: "Address already in use",
		},
	}}
	return nil
}

// RedisSays sends a command to the Redis at addr, and returns its answer: a line, or what the line announces.
func RedisSays(ctx context.Context, addr, command string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	var n int
	switch {
	case strings.HasPrefix(line, "-"):
		return "", fmt.Errorf("%s answers %s", addr, line)
	case strings.HasPrefix(line, "$"):
		if _, err := fmt.Sscan(line[1:], &n); err != nil || n < 0 {
			return "", fmt.Errorf("%s answers %s: %w", addr, line, err)
		}
		text := make([]byte, n)
		_, err := io.ReadFull(in, text)
		return string(text), err
	case line == "":
		return "", fmt.Errorf("%s answers nothing", addr)
	}
	return line[1:], nil
}
