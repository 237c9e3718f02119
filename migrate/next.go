package migrate

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// blocks says what stands in the way of the next step.
func blocks(s Status, v view) []string {
	out := []string{}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	_, stands := protocol.Gate(v.line[protocol.To])
	switch s.Phase {
	case None:
		for _, c := range s.OnTo {
			add("%s stands in line on %s: stop it, as nobody may lead there before the cutover", c, s.To)
		}
	case Begun, Asked:
		if why := hinders(s, stands); why != "" {
			add("%s", why)
		}
	case Moved:
		if v.fromErr != nil {
			add("who stands on %s cannot be seen: %v", s.From, v.fromErr)
		} else if from := v.line[protocol.From].Header; from.Sealed == "" && !protocol.Gated(from) {
			add("%s has no seal any more, as after a backup was restored: start nobody with it alone, who would lead there beside %s", s.From, s.To)
		}
		for _, c := range s.OnFrom {
			if c.Mode == Both {
				add("%s is on its way from %s to %s", c, s.From, s.To)
			} else {
				add("%s waits behind the seal on %s: restart it with %s", c, s.From, s.To)
			}
		}
	case Conflict, Aborting, Aborted:
		if !stands || v.line[protocol.To].Header.Migration.Seal {
			break
		}
		for _, c := range s.OnTo {
			if c.Mode != Both {
				add("%s stands behind the gate on %s, which an abort takes away: stop it", c, s.To)
			}
		}
	}
	return out
}

// hinders says why the leader cannot cut over; "" if it can.
func hinders(s Status, stands bool) string {
	switch {
	case !stands:
		return fmt.Sprintf("the gate on %s is gone: begin again", s.To)
	case len(s.OnFrom) == 0:
		return "nobody leads: start a process with both coordinators"
	case s.Ready:
		return ""
	case s.OnFrom[0].Mode == OldOnly:
		return fmt.Sprintf("the leader, %s, runs with %s alone, and has no place on %s: restart it with both coordinators, or ask it to resign", s.OnFrom[0], s.From, s.To)
	case len(s.OnTo) == 0:
		return fmt.Sprintf("the leader, %s, has no place on %s yet; if that lasts, it cannot reach it, or runs with %s alone", s.OnFrom[0], s.To, s.From)
	case s.OnTo[0].Mode == NewOnly:
		return fmt.Sprintf("%s was started with %s alone, and keeps the leader from its place there: stop it until the cutover", s.OnTo[0], s.To)
	}
	return fmt.Sprintf("the leader, %s, waits on %s for the place of %s to end", s.OnFrom[0], s.To, s.OnTo[0])
}

// waitsFor says what a cutover waits for.
func waitsFor(s Status) string {
	if len(s.Blocks) == 0 {
		return fmt.Sprintf("the leader, %s, is about to cut over", s.OnFrom[0])
	}
	return strings.Join(s.Blocks, "; ")
}

// next says what to do next.
func next(s Status, v view) string {
	_, stands := protocol.Gate(v.line[protocol.To])
	var todo []string
	switch s.Phase {
	case None:
		return "begin the migration"
	case Begun:
		if early := with(NewOnly, s.OnTo); len(early) > 0 {
			todo = append(todo, "stop until the cutover: "+named(early))
		}
		if old := with(OldOnly, s.OnFrom); len(old) > 0 {
			todo = append(todo, "restart with both coordinators: "+named(old))
		}
		if len(s.OnFrom) == 0 {
			todo = append(todo, "start a process with both coordinators")
		}
		return strings.Join(append(todo, "cut over"), "; then ")
	case Asked:
		return "wait: the leader cuts over as soon as nothing blocks it; or abort"
	case Sealed:
		return "cut over again: it is sealed, and the gate is still to be taken away"
	case Moved:
		if old := with(OldOnly, s.OnFrom); len(old) > 0 {
			todo = append(todo, fmt.Sprintf("restart with %s alone: %s", s.To, named(old)))
		}
		if both := with(Both, s.OnTo); len(both) > 0 {
			todo = append(todo, fmt.Sprintf("restart with %s alone, when it suits: %s", s.To, named(both)))
		}
		if len(s.Blocks) > 0 {
			todo = append(todo, "finish")
		}
		if len(todo) == 0 {
			return fmt.Sprintf("nothing: nobody who stands in line knows %s", s.From)
		}
		return strings.Join(todo, "; then ")
	case Aborting:
		return "abort again: an earlier abort was not finished"
	case Aborted:
		if stands && !v.line[protocol.To].Header.Migration.Seal {
			return "abort again: the gate is still to be taken away"
		}
		if _, stands := protocol.Gate(v.line[protocol.From]); stands && v.line[protocol.From].Header.Migration.Step == protocol.StepReopened {
			return fmt.Sprintf("abort again: the seal on %s is still to be taken away", s.From)
		}
		return "restart every process with " + s.From + " alone, or begin again"
	}
	return ""
}
