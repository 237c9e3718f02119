package composite

import (
	"context"

	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// guards notes that the candidacy is about to guard the record, on the coordinator where it stands.
// It costs a round trip or two for each record, once. The caller has the candidacy's writing.
func (s *session) guards(ctx context.Context, c *candidacy, sd protocol.Side, name string) error {
	if name == naming.OfElection(c.line, naming.History) || c.guarded[sd].Has(name) || c.guarded[sd].More {
		return nil
	}
	// On To the note is written when the record has been carried over.
	all, err := along.Goes(ctx, s.part(sd), c.line, c.now().at[sd], name, sd == protocol.From, s.log)
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.guarded[sd] = c.guarded[sd].With(name)
	c.guarded[sd].More = c.guarded[sd].More || all.More
	return nil
}

// guardedOnFrom returns the records that the candidacy itself has guarded on From.
func (c *candidacy) guardedOnFrom() []string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.guarded[protocol.From].Records
}
