//go:build linux

package prometheus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// patience is for what takes a moment on a machine that has time for it.
const patience = 2 * time.Minute

// program returns the path of a program of Prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: apt-get install prometheus, or put the programs prometheus and promtool of a release into PATH", name)
	}
	return path
}

// A server is a real Prometheus that scrapes some targets.
type server struct {
	addr   string
	client http.Client
}

// startServer starts a Prometheus that scrapes the targets four times a second and evaluates the
// rules each second. It ends with the test.
func startServer(t *testing.T, rules string, targets []string) *server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	// JSON is YAML.
	config, err := json.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "1s"},
		"rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "candidates", "static_configs": []any{map[string]any{"targets": targets}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}}
	for range 5 {
		s.addr = freeAddr(t)
		if s.start(t, file, filepath.Join(dir, "data-"+filepath.Ext(s.addr))) {
			return s
		}
	}
	t.Fatal("Prometheus does not become ready")
	return nil
}

// freeAddr returns an address of this machine where nobody listens. Somebody else may take it.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts the program, and reports whether it becomes ready.
func (s *server) start(t *testing.T, config, data string) bool {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+data,
		"--web.listen-address="+s.addr, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", &log)
		}
	})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if r, err := s.client.Get("http://" + s.addr + "/-/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ended:
			return false // somebody else has taken the address
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

// get reads the data of an answer of the API into v.
func (s *server) get(ctx context.Context, path string, query url.Values, v any) error {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	var said struct {
		Status string
		Error  string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	if said.Status != "success" {
		return fmt.Errorf("%s", said.Error)
	}
	return json.Unmarshal(said.Data, v)
}

// A sample is one series of an answer.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates an expression.
func (s *server) query(ctx context.Context, expr string) ([]sample, error) {
	var vector struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.get(ctx, "/api/v1/query", url.Values{"query": {expr}}, &vector); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	var samples []sample
	for _, r := range vector.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample{r.Metric, v})
	}
	return samples, nil
}
