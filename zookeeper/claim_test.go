package zookeeper_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

// Who claims an item behind another does not have it, also if the other confirms it, and has gone, before the claims are read.
func TestClaimOfWhatIsConfirmedMeanwhile(t *testing.T) {
	t.Parallel()
	first, second := session(t, open(t, zookeeper.Options{}, server(t))), session(t, open(t, zookeeper.Options{}, server(t)))
	item, err := first.Append(t.Context(), "q-items", "x")
	if err != nil {
		t.Fatal(err)
	}
	claim, err := first.Claim(t.Context(), "q-claims", fmt.Sprintf("\n%s %d", item.Key, item.Position), "", item)
	if err != nil {
		t.Fatal(err)
	}
	holds, err := zookeeper.ClaimInSteps(t.Context(), second, "q-claims", item)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Remove(t.Context(), item, claim.Member), first.Leave(t.Context(), claim.Member)); err != nil {
		t.Fatal(err)
	}
	if err := holds(); !errors.Is(err, backend.ErrTaken) {
		t.Errorf("the second claim: %v; want that the item is taken", err)
	}
}
