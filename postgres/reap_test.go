//go:build linux

package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// Two of those who are left after a crash of many end the same sessions at the same moment, each in an order of its own. They do not
// hold each other up.
func TestTwoReap(t *testing.T) {
	t.Parallel()
	const n = 2000
	addr := coordtest.NewPostgres(t, nil).Addrs()[0]
	if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), ""); err != nil {
		t.Fatal(err)
	}
	all := strings.Split(run(t, addr, fmt.Sprintf(`INSERT INTO succession.session (id, ttl, era, beat) SELECT gen_random_uuid(), 1000, succession.era(), 1 FROM generate_series(1, %d);
		UPDATE succession.session SET at = clock_timestamp() - interval '1 min'; SELECT string_agg(id::text, ',' ORDER BY id) FROM succession.session`, n)), ",")
	life := run(t, addr, "SELECT succession.life()")
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	watch := calm.Start(t)
	done := make(chan error, 2)
	for _, ids := range [][]string{all, reversed} {
		c := connect(t, addr)
		go func() {
			beats := strings.TrimSuffix(strings.Repeat("1,", n), ",")
			_, err := c.Exec(t.Context(), "SELECT succession.reap($1::uuid[], $2::bigint[], $3)", pgx.QueryExecModeSimpleProtocol,
				"{"+strings.Join(ids, ",")+"}", "{"+beats+"}", life)
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	watch.Within(5*time.Second, "%d sessions were ended by two at once", n)
	if left := run(t, addr, "SELECT count(*) FROM succession.session"); left != "0" {
		t.Errorf("%s of %d sessions are left", left, n)
	}
}
