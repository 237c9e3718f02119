// Package recipe is what recipes have in common. Those whose members hold something together use names beside
// their own, and only some of the options of an election make sense for them: a [Recipe] checks that.
package recipe

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/naming"
)

// A Recipe says what a recipe uses.
type Recipe struct {
	Package string       // of the recipe, which begins each error
	Owner   naming.Owner // whose names it uses
	// History says that some of its members hold something alone, of which a history is kept.
	History bool
}

// Options returns a copy of o, which may be nil, for all lines that the recipe consists of: with one ID in all of them, and with a
// Trace that hears of the recipe under its name, and not of the lines.
func (r Recipe) Options(name string, o *elect.Options) *elect.Options {
	made := new(elect.Options)
	if o != nil {
		*made = *o
	}
	made.ID = elect.New(nil, name, made).ID() // the default one differs from election to election
	if f := made.Trace; f != nil {
		made.Trace = func(ev trace.Event) {
			ev.Election, ev.Recipe = name, string(r.Owner)
			f(ev)
		}
	}
	return made
}

// Check returns what is wrong with the name, or with the options.
func (r Recipe) Check(name string, o *elect.Options) error {
	if err := r.CheckName(name); err != nil {
		return err
	}
	return r.CheckOptions(name, o)
}

// CheckName returns what is wrong with the name.
func (r Recipe) CheckName(name string) error {
	if err := naming.Check(r.Owner, name); err != nil {
		return fmt.Errorf("%s: %w", r.Package, err)
	}
	return nil
}

// CheckOptions returns what is wrong with the options. It also refuses those with which members are compared: who holds something
// together with others is not in front of anybody, and never gives way.
func (r Recipe) CheckOptions(name string, o *elect.Options) error {
	if o == nil {
		return nil
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"Ready", o.Ready != nil},
		{"Priority", o.Priority != 0},
		{"Site", o.Site != ""},
		{"History", o.History != 0 && !r.History},
	} {
		if option.set {
			return fmt.Errorf("%s: %w option %s of the %s %s: leave it out, for those who hold it together are not compared, and no history is kept of them",
				r.Package, backend.ErrInvalid, option.name, r.Owner, name)
		}
	}
	return o.Check()
}
