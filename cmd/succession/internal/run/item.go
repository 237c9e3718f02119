//go:build unix

package run

import (
	"context"
	"os"

	"github.com/succession-dev/succession/recipes/queue"
)

// itemVariables are what the command of queue take has in its environment. An item that no variable can have
// is to be read from the input.
func itemVariables(item *queue.Item) []string {
	return []string{variable("SUCCESSION_ITEM", item.Value), variable("SUCCESSION_ITEM_ID", item.ID)}
}

// itemInput returns a file from which the command reads the item as a line. Writing does not
// block: a pipe keeps at least 4 KiB, and an item is smaller than that ([queue.MaxValue]).
func itemInput(item *queue.Item) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := w.WriteString(item.Value + "\n"); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// confirm removes the item, whose command has ended with exit code 0. A signal does not keep it
// from that, as the work is done; a second one does. After an error the item may have been removed nevertheless.
func (r *runner) confirm(h *held) error {
	item := h.item
	h.item = nil // it is not to be called returned
	done := func(context.Context) error { return item.Done(context.Background()) }
	if err := r.attend(context.Background(), done); err != nil {
		r.report.warn("unconfirmed", "it is not known whether the item is confirmed: "+err.Error(), token(h.Term), cause(err))
		return r.left(r.o.unconfirmed(err))
	}
	r.report.info("confirmed", "confirmed the item", token(h.Term))
	return nil
}
