package rig

import (
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// NewOperator returns the operator that the driver of the URL brings. The caller links the driver.
func NewOperator(url string) (coordinator.Operator, error) {
	u, err := coordinator.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return coordinator.DefaultMux.Operator(u)
}

// OperatorOf is [NewOperator] for a test.
func OperatorOf(t testing.TB, url string) coordinator.Operator {
	t.Helper()
	o, err := NewOperator(url)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// CheckOperator does what an operator does, at the coordinator of the URL and below a name of its own, and looks at it by
// a client of the driver.
func CheckOperator(t *testing.T, url string) {
	t.Helper()
	const election = "operator/election"
	ctx, o := t.Context(), OperatorOf(t, url)
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	exists := func(name string, want bool) {
		t.Helper()
		if got, err := o.Exists(ctx, name); got != want || err != nil {
			t.Fatalf("%s exists: %t, %v; want %t", name, got, err, want)
		}
	}
	b, err := succession.Connect(ctx, url)
	do("open", err)
	defer b.Close()
	s, err := b.Session(ctx)
	do("session", err)
	join := func() backend.Member {
		t.Helper()
		j, err := s.Join(ctx, election, "x", "")
		do("join", err)
		return j.Member
	}
	line := func(want ...backend.Member) {
		t.Helper()
		do("refresh", s.Refresh(ctx))
		l, err := s.Line(ctx, election)
		do("line", err)
		if len(l.Members) != len(want) {
			t.Fatalf("%d members stand, want %d", len(l.Members), len(want))
		}
		for i, m := range want {
			if l.Members[i].Key != m.Key {
				t.Errorf("member %d is %s, want %s", i, l.Members[i].Key, m.Key)
			}
		}
	}

	exists("operator", false)
	do("remove what never stood", o.Remove(ctx, backend.Member{Line: election, Key: "n_1"}))
	do("drop what is not there", o.Drop(ctx, election))
	do("clear what is not there", o.Clear(ctx, "operator"))
	m, n := join(), join()
	exists("operator", true)
	exists(election, true)
	exists("operat", false)
	do("remove", o.Remove(ctx, m))
	do("remove again", o.Remove(ctx, m))
	line(n)
	do("drop", o.Drop(ctx, election))
	exists(election, false)
	line()
	if _, err := s.Put(ctx, "operator/record", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	m = join()
	line(m)
	do("clear", o.Clear(ctx, "operator"))
	exists("operator", false)
	line()
}
