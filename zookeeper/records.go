package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// A record is the data of a persistent znode. Its version is the znode's mzxid, which no
// two writes share. ZooKeeper itself takes only the dataVersion as a condition. So a write on
// condition reads the znode, compares the mzxid, and writes on condition of the dataVersion, and
// of the count of deletions (deletions.go): the two together are never the same again.
//
// A znode without data is no record: a znode may only be the parent of others, and one
// that has children cannot be deleted. An empty value must look different from that. So a
// value that consists of zero bytes only, or is empty, is stored with one more zero byte.

func encode(value []byte) []byte {
	if len(bytes.Trim(value, "\x00")) == 0 {
		return append(bytes.Clone(value), 0)
	}
	return value
}

func decode(data []byte) []byte {
	if len(data) > 0 && len(bytes.Trim(data, "\x00")) == 0 {
		return data[1:]
	}
	return data
}

// version returns the version of the record in the znode n.
func version(n node) backend.Version {
	if n.stat == nil || len(n.data) == 0 {
		return backend.Absent
	}
	return backend.Version(n.stat.Mzxid)
}

func record(name string, n node) backend.Record {
	r := backend.Record{Name: name, Version: version(n)}
	if r.Version != backend.Absent {
		r.Value = decode(n.data)
	}
	return r
}

// Get returns the record; see [backend.Session].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	n, err := retry(ctx, s, get(s.options.path(name)))
	if err == zk.ErrNoNode {
		n, err = node{}, nil
	}
	return record(name, n), err
}

// Refresh makes the reads that follow fresh; see [backend.Session]. It is a quorum write that changes nothing. The request that
// ZooKeeper has for it, sync, would be cheaper, but a leader that is cut off from the ensemble, and
// does not know yet, answers it by itself.
func (s *session) Refresh(ctx context.Context) error {
	_, err := retry(ctx, s, barrier("/"))
	return err
}

// Watch blocks until the record has another version than after; see [backend.Session].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	err = s.follow(ctx, s.options.path(name), wire.WatchData, func(v sight) (bool, error) {
		if v.missing {
			v.node = node{}
		}
		r = record(name, v.node)
		return r.Version != after, nil
	})
	return r, err
}

// Put writes the record if the condition holds; see [backend.Session].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	at := versionIn(cond)
	return s.write(ctx, name, cond, at != 0, func(ctx context.Context, p premises) (backend.Version, error) {
		set := &zk.SetDataRequest{Path: p.path, Data: encode(value), Version: -1}
		ops := p.guard
		var results []zk.MultiResponse
		var err error
		switch {
		case p.now.stat == nil:
			// The answer to a create does not have the zxid. The answer to a write has it.
			ops = append(ops, &zk.CreateRequest{Path: p.path, Data: []byte{}, Acl: s.options.acl(), Flags: flags(name, cond)}, set)
			results, err = do(ctx, s, multi(ops...))
		case at == 0:
			ops = append(ops, set)
			results, err = do(ctx, s, multi(ops...))
		default:
			set.Version = p.now.stat.Version
			ops = append(ops, set)
			results, err = s.unchanged(ctx, ops, p.tally)
		}
		// If the guard has failed instead, reading again tells that the member has gone.
		if err == zk.ErrNoNode && p.now.stat == nil && len(results) == len(ops) && results[len(p.guard)].Error == zk.ErrNoNode {
			if up := parent(p.path); up != "/" {
				if err := s.ensure(ctx, up); err != nil {
					return 0, err
				}
			}
		}
		if err != nil {
			return 0, err
		}
		return backend.Version(results[slices.Index(ops, any(set))].Stat.Mzxid), nil
	})
}

// Delete removes the record if the condition holds; see [backend.Session]. A znode that has children, such as that of an
// election with members, is not deleted but loses its data. So does a znode that this client may
// write but not delete, as one that an administrator has made beforehand, or whose deletion it has
// no right to count.
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.write(ctx, name, cond, true, func(ctx context.Context, p premises) (backend.Version, error) {
		if version(p.now) == backend.Absent {
			switch {
			case !p.fresh:
				return 0, errStale
			case len(p.guard) > 0:
				_, err := do(ctx, s, multi(p.guard...))
				return 0, err
			}
			return 0, nil
		}
		at := p.now.stat.Version
		if versionIn(cond) == 0 {
			at, p.tally.version = -1, -1
		}
		_, err := s.transact(ctx, append(p.guard, &zk.DeleteRequest{Path: p.path, Version: at}), s.count(p.tally))
		if err == zk.ErrNotEmpty || errors.Is(err, backend.ErrDenied) {
			denied := err
			empty := append(p.guard, &zk.SetDataRequest{Path: p.path, Data: []byte{}, Version: at})
			if at < 0 {
				_, err = do(ctx, s, multi(empty...))
			} else {
				_, err = s.unchanged(ctx, empty, p.tally)
			}
			if errors.Is(err, backend.ErrDenied) && errors.Is(denied, backend.ErrDenied) {
				err = fmt.Errorf("%w; or else, to empty the znode, %w", denied, err)
			}
		}
		return 0, err
	})
	return err
}

// versionIn returns the version that cond names, or 0.
func versionIn(cond *backend.If) backend.Version {
	if cond == nil {
		return 0
	}
	return cond.Version
}

// errStale says that premises may be old, and that a write would do nothing because of that: the caller may know from another server of
// what is to be removed, and this server may be behind that one.
var errStale = errors.New("it was read from a server that may be behind")

// premises are what a write on condition is based on.
type premises struct {
	path  string
	fresh bool  // they were read after a Refresh
	now   node  // the zero node if there is none
	tally tally // read before now, if it was asked for
	guard []any // the operations that make a write fail if the condition's member has gone; they are copied by append
}

// write runs a write on condition. f gets the premises, and the tally among them if tallied is set. It may fail with errStale
// unless they are fresh.
func (s *session) write(ctx context.Context, name string, cond *backend.If, tallied bool,
	f func(ctx context.Context, p premises) (backend.Version, error),
) (backend.Version, error) {
	path := s.options.path(name)
	fresh := false
	wait := pauses()
	// If the count has changed, somebody else has deleted a record, probably another one. The pauses are
	// short, because each try has the same chance to fall between two such writes.
	counting := backoff.Backoff{Min: time.Millisecond, Max: 4 * time.Millisecond}
	for {
		p, err := sure(ctx, s, func(ctx context.Context) (premises, error) { return s.premises(ctx, path, cond, tallied) })
		var v backend.Version
		if err == nil {
			p.fresh = fresh
			v, err = f(ctx, p)
		}
		switch {
		case err == errStale:
			fresh = true
			err = s.Refresh(ctx)
		case errors.As(err, new(countError)) && !errors.Is(err, backend.ErrDenied):
			err = counting.After(ctx, fmt.Errorf("%s has changed between the read and the write; a client that writes to it all the time prevents every write on condition", p.tally.path))
		case err == zk.ErrNoNode, err == zk.ErrNodeExists, err == zk.ErrBadVersion:
			// Something has changed between the read and the write. Reading again tells what.
			err = wait.Sleep(ctx)
		case err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && !errors.Is(err, backend.ErrUnavailable):
			return 0, counting.Cause(ctx) // err does not say what has taken so long
		default:
			return v, err
		}
		if err != nil {
			return 0, err
		}
	}
}

// premises reads the znode, the tally before it if tallied is set, and cond's member beside them. It
// fails if cond does not hold on this server. ZooKeeper can check only that a znode of the member's
// name is there. So premises finds out just before that this znode is the member. It reads neither that nor the znode that is
// to be written if a watch shows it, as for a leader, or an item that was taken: the watch is as fresh as every answer so far.
func (s *session) premises(ctx context.Context, path string, cond *backend.If, tallied bool) (premises, error) {
	if cond == nil {
		cond = new(backend.If)
	}
	p := premises{path: path}
	m := cond.Member
	guarded := m != (backend.Member{})
	var at string
	if guarded {
		var err error
		if at, err = s.options.member(m); err != nil {
			return p, err
		}
		p.guard = []any{check(at)}[:1:1]
	}
	_, err := kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) (_ struct{}, err error) {
		var member call[node]
		if _, known := s.watches.known(dataOf(at)); guarded && !known {
			if member, err = start(ctx, s, get(at)); err != nil {
				return struct{}{}, err
			}
		}
		if tallied {
			p.tally, p.now, err = s.counted(ctx, path)
		} else if v, known := s.watches.known(dataOf(path)); known {
			p.now = v.node
		} else {
			p.now, err = do(ctx, s, get(path))
		}
		if err == zk.ErrNoNode {
			p.now, err = node{}, nil
		}
		if err != nil || !guarded {
			return struct{}{}, err
		}
		var n node
		if member.answer != nil {
			n, err = member.wait(ctx)
		} else if v, known := s.watches.known(dataOf(at)); known {
			n = v.node
		} else { // it has changed meanwhile
			n, err = do(ctx, s, get(at))
		}
		if err == zk.ErrNoNode || err == nil && n.position() != m.Position {
			err = fmt.Errorf("%w: %s", backend.ErrNotMember, m.Key)
		}
		return struct{}{}, err
	})
	if err == nil && cond.Version != backend.Any && cond.Version != version(p.now) {
		err = backend.ErrVersion
	}
	return p, err
}

// List returns the names of the records directly under dir; see [backend.Session]. It reads each child of dir. If dir is an election,
// that is each member too: a name like jobs/1700000000 may be a record's or a member's.
func (s *session) List(ctx context.Context, dir string) (names []string, err error) {
	records, err := s.ReadAll(ctx, dir)
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names, err
}

// ReadAll returns the records directly under dir; see [backend.Session]. It sends a request for each child of dir:
// ZooKeeper can be asked for all their names, but for the value of one at a time.
func (s *session) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	records, err := kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) ([]backend.Record, error) {
		if election, ok := strings.CutSuffix(dir, naming.Unready); ok && election != "" {
			return s.unready(ctx, election)
		}
		return s.readAll(ctx, dir)
	})
	slices.SortFunc(records, func(a, b backend.Record) int { return strings.Compare(a.Name, b.Name) })
	return records, err
}

func (s *session) readAll(ctx context.Context, dir string) ([]backend.Record, error) {
	names, nodes, err := s.readChildren(ctx, dir)
	if err != nil {
		return nil, err
	}
	var records []backend.Record
	for i, n := range nodes {
		if version(n) != backend.Absent && !n.inLine(strings.TrimPrefix(names[i], dir+"/")) {
			records = append(records, record(names[i], n))
		}
	}
	return records, nil
}
