package kubernetes

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// An operator is a [coordinator.Operator] that deletes Leases, as kubectl does.
type operator struct {
	config *rest.Config
	o      *Options
}

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	cfg, o, err := configOf(u)
	if err == nil {
		o, err = o.filled()
	}
	if err != nil {
		return nil, err
	}
	return &operator{cfg, o}, nil
}

// patience is how long an operator waits for one answer, unless its context ends before.
const patience = 30 * time.Second

// with calls f with a new connection.
func (op *operator) with(f func(b *Backend) error) error {
	w, err := newWire(op.config, op.o)
	if err != nil {
		return err
	}
	defer w.close()
	return f(&Backend{o: op.o, wire: w, space: hash("space", op.o.Prefix)})
}

// below returns the members and records of a name, and of those below it; the last member first.
func (op *operator) below(ctx context.Context, b *Backend, name string) (names []string, err error) {
	members, err := b.wire.list(ctx, patience, memberLabel+"="+b.space, metadata)
	if err != nil {
		return nil, err
	}
	records, err := b.wire.list(ctx, patience, recordLabel+"="+b.space, metadata)
	if err != nil {
		return nil, err
	}
	for _, o := range backward(append(members.items, records.items...)) {
		if of := o.note(nameNote); of == name || strings.HasPrefix(of, name+"/") {
			names = append(names, o.Metadata.Name)
		}
	}
	return names, nil
}

func remove(ctx context.Context, b *Backend, names []string) (err error) {
	for _, name := range names {
		err = errors.Join(err, gone(b.wire.remove(ctx, patience, name, "", "")))
	}
	return err
}

func (op *operator) Exists(ctx context.Context, name string) (there bool, err error) {
	err = op.with(func(b *Backend) error {
		names, err := op.below(ctx, b, name)
		there = len(names) > 0
		return err
	})
	return there, err
}

func (op *operator) Remove(ctx context.Context, m backend.Member) error {
	return op.with(func(b *Backend) error { return remove(ctx, b, []string{m.Key}) })
}

// Drop deletes the last member first.
func (op *operator) Drop(ctx context.Context, election string) error {
	return op.with(func(b *Backend) error {
		l, err := b.wire.list(ctx, patience, lineLabel+"="+b.lineLabel(election), metadata)
		if err != nil {
			return err
		}
		var names []string
		for _, o := range backward(l.items) {
			names = append(names, o.Metadata.Name)
		}
		return remove(ctx, b, names)
	})
}

func (op *operator) Clear(ctx context.Context, name string) error {
	return op.with(func(b *Backend) error {
		names, err := op.below(ctx, b, name)
		if err != nil {
			return err
		}
		return remove(ctx, b, names)
	})
}
