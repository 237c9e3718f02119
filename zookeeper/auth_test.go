package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

var (
	alice = &zookeeper.Digest{User: "alice", Password: "wonderland"}
	bob   = &zookeeper.Digest{User: "bob", Password: "the builder"}
)

// rights are the letters of ZooKeeper's shell, and what errors call them.
var rights = []struct {
	letter string
	perm   int32
	name   string
}{{"c", zk.PermCreate, "CREATE"}, {"r", zk.PermRead, "READ"}, {"w", zk.PermWrite, "WRITE"}, {"d", zk.PermDelete, "DELETE"}}

func perms(letters string) int32 {
	var p int32
	for _, r := range rights {
		if strings.Contains(letters, r.letter) {
			p |= r.perm
		}
	}
	return p
}

// What is needed is enough, and with one right less there is an error that names
// it.
func TestRights(t *testing.T) {
	const value = "v"
	stand := func(ctx context.Context, s backend.Session) error {
		m, err := s.Join(ctx, "e", value, "")
		if err != nil {
			return err
		}
		_, err = s.Ahead(ctx, m.Member)
		return err
	}
	for _, test := range []struct {
		name  string
		top   string // rights on the znode above the line
		line  string // rights on the line's znode
		do    func(ctx context.Context, s backend.Session) error
		where string // the znode that errors name
	}{
		{"stand in line", "", "cr", stand, "/e"},
		{"stand in line and leave", "", "crd", func(ctx context.Context, s backend.Session) error {
			m, err := s.Join(ctx, "e", value, "")
			if err != nil {
				return err
			}
			if _, err := s.Ahead(ctx, m.Member); err != nil {
				return err
			}
			return s.Leave(ctx, m.Member)
		}, "/e"},
		{"pin", "", "crwd", func(ctx context.Context, s backend.Session) error {
			m, err := s.Join(ctx, "e", value, "")
			if err != nil {
				return err
			}
			_, v, err := headerOf(ctx, s)
			if err != nil {
				return err
			}
			return s.Pin(ctx, m.Member, backend.Header{}, v)
		}, "/e"},
		{"append an item and remove it", "", "cd", func(ctx context.Context, s backend.Session) error {
			by, err := s.Join(ctx, "e", value, "")
			if err != nil {
				return err
			}
			m, err := s.Append(ctx, "e", value)
			if err != nil {
				return err
			}
			return s.Remove(ctx, m, by.Member)
		}, "/e"},
		{"watch a line", "", "r", func(ctx context.Context, s backend.Session) error {
			_, err := s.WatchLine(ctx, "e", backend.Line{Members: []backend.Member{{Key: "n_0000000000", Position: 1}}})
			return err
		}, "/e"},
		{"observe", "", "r", func(ctx context.Context, s backend.Session) error {
			_, err := s.Line(ctx, "e")
			return err
		}, "/e"},
		{"follow the record", "", "r", func(ctx context.Context, s backend.Session) error {
			_, err := s.Watch(ctx, "e", backend.Absent)
			return err
		}, "/e"},
		{"write the record", "", "rw", func(ctx context.Context, s backend.Session) error {
			_, err := s.Put(ctx, "e", []byte("{}"), nil)
			return err
		}, "/e"},
		{"first to stand in a new line", "c", "", func(ctx context.Context, s backend.Session) error {
			m, err := s.Join(ctx, "new", value, "")
			if err != nil {
				return err
			}
			return s.Leave(ctx, m.Member)
		}, ""},
		{"delete a record", "cd", "r", func(ctx context.Context, s backend.Session) error {
			return s.Delete(ctx, "e", nil)
		}, ""},
		{"delete a record and leave its znode", "", "rw", func(ctx context.Context, s backend.Session) error {
			return s.Delete(ctx, "e", nil)
		}, "/e"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			try := func(top, line string) error {
				root := "/" + coordtest.Name(t)
				op := raw(t, server(t))
				for _, z := range []struct{ path, rights, data string }{{root, top, ""}, {root + "/e", line, `{"fence":1}`}} {
					acl := zk.DigestACL(perms(z.rights), alice.User, alice.Password)
					if z.rights == "" {
						acl = zk.DigestACL(zk.PermAll, "nobody", "x")
					}
					if z.path == root { // so that the line's znode can be made
						acl = append(acl, zk.DigestACL(zk.PermAll, "root", "x")...)
					}
					op.AddAuth("digest", []byte("root:x"))
					if _, err := op.Create(z.path, []byte(z.data), 0, acl); err != nil {
						t.Fatal(err)
					}
				}
				b := open(t, zookeeper.Options{Prefix: root, Auth: alice}, server(t))
				defer b.Close()
				watch := calm.Start(t)
				err := test.do(within(t, time.Minute), session(t, b))
				watch.Within(5*time.Second, "it, with the rights %q and %q,", top, line)
				return err
			}
			if err := try(test.top, test.line); err != nil {
				t.Errorf("with the rights %q above and %q on the line: %v", test.top, test.line, err)
			}
			for _, r := range rights {
				top, line := strings.Replace(test.top, r.letter, "", 1), strings.Replace(test.line, r.letter, "", 1)
				if top == test.top && line == test.line {
					continue
				}
				err := try(top, line)
				says := fmt.Sprintf("the right %s on znode", r.name)
				if !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), test.where+" is missing") {
					t.Errorf("without %s: %v", r.name, err)
				} else {
					t.Logf("without %s: %v", r.name, err)
				}
			}
		})
	}
}

func headerOf(ctx context.Context, s backend.Session) (backend.Header, backend.Version, error) {
	l, err := s.Line(ctx, "e")
	return l.Header, l.Version, err
}

// Those who have other credentials, or none, can look and wait, and can neither
// join, nor remove, nor overwrite.
func TestMembersAreProtected(t *testing.T) {
	a := session(t, open(t, zookeeper.Options{Auth: alice}, server(t)))
	m := join(t, a, "e", "alice's")
	other := session(t, open(t, zookeeper.Options{Auth: alice}, server(t)))
	behind := join(t, other, "e", "another of alice's")
	at := chroot(t) + "/e/" + m.Key

	for name, auth := range map[string]*zookeeper.Digest{"bob": bob, "nobody": nil, "alice with a wrong password": {User: "alice", Password: "x"}} {
		s := session(t, open(t, zookeeper.Options{Auth: auth}, server(t)))
		if l := line(t, s, "e"); len(l.Members) != 2 || l.Members[0] != m {
			t.Errorf("%s sees %+v", name, l)
		}
		if _, err := s.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s joined: %v", name, err)
		}
		if err := s.Leave(t.Context(), m); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s removed a member: %v", name, err)
		}
		if _, err := s.Put(t.Context(), "e", []byte("{}"), nil); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s wrote the record: %v", name, err)
		}
		op := raw(t, server(t))
		if auth != nil {
			if err := op.AddAuth("digest", []byte(auth.User+":"+auth.Password)); err != nil {
				t.Fatal(err)
			}
		}
		if err := op.Delete(at, -1); err != zk.ErrNoAuth {
			t.Errorf("%s deleted a member: %v", name, err)
		}
		if _, err := op.Set(at, nil, -1); err != zk.ErrNoAuth {
			t.Errorf("%s overwrote a member: %v", name, err)
		}
		if _, err := op.SetACL(chroot(t)+"/e", zk.WorldACL(zk.PermAll), -1); err != zk.ErrNoAuth {
			t.Errorf("%s changed the line's ACL: %v", name, err)
		}
	}
	// The same credentials are one owner: an operator who has them can remove any.
	op := raw(t, server(t))
	if err := op.AddAuth("digest", []byte(alice.User+":"+alice.Password)); err != nil {
		t.Fatal(err)
	}
	if err := op.Delete(at, -1); err != nil {
		t.Error(err)
	}
	if p := ahead(t, other, behind); !p.First {
		t.Errorf("%+v", p)
	}
	acl, _, err := op.GetACL(chroot(t) + "/e/" + behind.Key)
	if err != nil || len(acl) != 2 || acl[0].Scheme != "digest" || acl[1] != zk.WorldACL(zk.PermRead)[0] {
		t.Errorf("ACL of a member: %+v, %v", acl, err)
	}
}

// If the root znode may not be read, a write still fails with the error of its condition.
func TestRootNotReadable(t *testing.T) {
	t.Parallel()
	z := own(t)
	s := session(t, open(t, zookeeper.Options{}, z.Addrs()...))
	m := join(t, s, "e", "")
	v, err := s.Put(t.Context(), "r", []byte("1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, z.Addrs()[0]).SetACL("/", zk.WorldACL(zk.PermCreate), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "r", nil, &backend.If{Member: m}); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Put of a member that has gone: %v", err)
	}
	if _, err := s.Put(t.Context(), "r", nil, &backend.If{Version: v + 1}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Put on another version: %v", err)
	}
	if err := s.Delete(t.Context(), "r", &backend.If{Version: v + 1}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Delete on another version: %v", err)
	}
	session(t, open(t, zookeeper.Options{}, z.Addrs()...))
}

// A session without the right to delete ends its members by ending itself.
func TestCloseWithoutDelete(t *testing.T) {
	root := "/" + coordtest.Name(t)
	op := raw(t, server(t))
	for _, path := range []string{root, root + "/e"} {
		if _, err := op.Create(path, nil, 0, append(zk.WorldACL(zk.PermRead|zk.PermCreate), zk.DigestACL(zk.PermAll, "x", "x")...)); err != nil {
			t.Fatal(err)
		}
	}
	s := session(t, open(t, zookeeper.Options{Prefix: root, Auth: alice}, server(t)))
	m := join(t, s, "e", "")
	if err := s.Leave(t.Context(), m); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Leave without DELETE: %v", err)
	}
	if err := s.Close(within(t, time.Minute)); err != nil {
		t.Error(err)
	}
	if names, _, err := op.Children(root + "/e"); err != nil || len(names) != 0 {
		t.Errorf("left behind: %q, %v", names, err)
	}
}

// Credentials are shown on each connection, before anything else.
func TestAuthSurvivesReconnect(t *testing.T) {
	proxy := coordtest.NewProxy(t, server(t))
	s := session(t, open(t, zookeeper.Options{Auth: alice}, proxy.Addr()))
	for range 5 {
		m := join(t, s, "e", "")
		proxy.Reset()
		if err := s.Leave(within(t, time.Minute), m); err != nil {
			t.Fatal(err)
		}
	}
}

// Servers that demand authentication, and those that refuse it.
func TestAuthRefused(t *testing.T) {
	strict := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{
		Config: []string{"enforce.auth.enabled=true", "enforce.auth.schemes=digest"},
	}).Addrs()[0]
	watch := calm.Start(t)
	_, err := succession.Connect(t.Context(), "zookeeper://"+strict+"?connect=20s")
	if !errors.Is(err, backend.ErrDenied) || errors.Is(err, backend.ErrSessionEnded) || !strings.Contains(err.Error(), "password-file") {
		t.Errorf("without credentials: %v", err)
	}
	watch.Within(2*time.Second, "Open")
	t.Log(err)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("wonderland\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := succession.Connect(t.Context(), "zookeeper://"+strict+"?connect=20s&user=alice&password-file="+file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	join(t, s, "e", "")
}

func TestPasswordIsNotPrinted(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, v := range []any{alice, *alice, zookeeper.Options{Auth: alice}} {
			if got := fmt.Sprintf(format, v); strings.Contains(got, alice.Password) {
				t.Errorf("%s of a %T shows the password: %s", format, v, got)
			}
		}
	}
}
