package coordtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// probeInterval is the time between two questions to a server that is starting:
// no event tells a stranger that a server has begun to serve.
const probeInterval = 20 * time.Millisecond

// readyTimeout bounds the wait for a server, many times over also on a busy machine.
const readyTimeout = time.Minute

// A Server is one process of a coordinator, with an address and data that stay the
// same from start to start. Its methods are safe for concurrent use.
type Server struct {
	addr string
	log  string // file that all starts append to
	spec spec
	port *port // in a network that can be cut; nil without

	mu   sync.Mutex
	proc *process // nil before the first start
	from int64    // where the output of proc begins in log
}

// A spec is what a kind of coordinator says about one of its servers.
type spec struct {
	argv []string
	// data is the folder with all that a restart keeps.
	data string
	// reset makes the data empty.
	reset func() error
	// probe returns nil when the server serves clients at addr; ctx is short.
	probe func(ctx context.Context, addr string) error
	// portTaken is what the server logs when one of its ports is in use.
	portTaken string
	// own is for a server that is several processes: it changes how the first one is started. Nil for all others.
	own func(*exec.Cmd)
}

// Addr returns the host:port that clients connect to.
func (s *Server) Addr() string { return s.addr }

// LogFile returns the path of the file that the server writes its output to.
func (s *Server) LogFile() string { return s.log }

// Start starts the process and returns without waiting until it serves; see
// [Server.Ready]. A server that runs already is left alone.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && s.proc.alive() {
		return nil
	}
	s.from = 0
	if fi, err := os.Stat(s.log); err == nil {
		s.from = fi.Size()
	}
	proc, err := startProcess(s.spec, s.log, s.port)
	if err != nil {
		return err
	}
	s.proc = proc
	return nil
}

// Ready blocks until the server serves clients, at most a minute, and fails earlier
// when its process or ctx ends. A member of an ensemble serves only while the ensemble
// has a quorum.
func (s *Server) Ready(ctx context.Context) error {
	proc := s.process()
	if proc == nil {
		return fmt.Errorf("server %s: %w; call Start first", s.addr, errNotRunning)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := s.spec.probe(attempt, s.addr)
		cancel()
		if err == nil {
			return nil
		}
		ended := !proc.alive() // before its log is read, so that the log is complete
		switch {
		// A server of an ensemble lives on without the port that it lacks.
		case strings.Contains(s.output(), s.spec.portTaken):
			return s.notReady(errPortTaken)
		case ended:
			return s.notReady(fmt.Errorf("its process has ended: %w", exitError(proc.err)))
		}
		select {
		case <-proc.done:
		case <-ctx.Done():
			return s.notReady(fmt.Errorf("%w: %w", context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

func (s *Server) notReady(why error) error {
	return fmt.Errorf("server %s does not serve: %w; its log ends:\n%s", s.addr, why, s.LogTail(25))
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Ended reports whether the process that was started last has ended, by itself or not.
func (s *Server) Ended() bool {
	p := s.process()
	return p != nil && !p.alive()
}

// Kill ends the process as a crash does, with SIGKILL, and returns when it is gone.
// Its data stay as they are. A server that does not run is left alone.
func (s *Server) Kill() {
	if p := s.process(); p != nil {
		p.kill()
	}
}

// Stop ends the process in good order, with SIGTERM, and after 5 s with SIGKILL. It
// returns when the process is gone.
func (s *Server) Stop() {
	if p := s.process(); p != nil {
		p.stop()
	}
}

// Pause stops the process with SIGSTOP: connections stay open, and nobody answers.
// It returns when no thread of it runs any more.
func (s *Server) Pause() error { return s.signal("pause", (*process).pause) }

// Resume lets a paused process go on.
func (s *Server) Resume() error { return s.signal("resume", (*process).resume) }

func (s *Server) signal(what string, f func(*process) error) error {
	err := errNotRunning
	if p := s.process(); p != nil {
		err = f(p)
	}
	if err != nil {
		return fmt.Errorf("%s server %s: %w", what, s.addr, err)
	}
	return nil
}

// Restart kills the process, if it runs, starts it on the same port with the same
// data, and blocks until it serves; see [Server.Ready].
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	if err := s.Start(); err != nil {
		return err
	}
	return s.Ready(ctx)
}

// Wipe is Restart with empty data: the coordinator's log begins anew, unless other
// members of an ensemble still hold it.
func (s *Server) Wipe(ctx context.Context) error {
	s.Kill()
	if err := s.spec.reset(); err != nil {
		return err
	}
	return s.Restart(ctx)
}

// LogTail returns the last lines of the server's output.
func (s *Server) LogTail(lines int) string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// output returns what the newest process has written. A log that cannot be read
// counts as empty: it only serves to explain a failure.
func (s *Server) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := os.ReadFile(s.log)
	if err != nil || int64(len(b)) < s.from {
		return ""
	}
	return string(b[s.from:])
}

// PIDs returns the ids of the server's processes: the one that was started last, and its children.
func (s *Server) PIDs() ([]int, error) {
	proc := s.process()
	if proc == nil {
		return nil, nil
	}
	children, err := childrenOf(proc.os.Pid)
	return append(children, proc.os.Pid), err
}

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}
