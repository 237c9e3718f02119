package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/security"
)

// An operator is a [coordinator.Operator] that uses the tables, with the rights of their owner.
type operator struct {
	config   func() (*pgconn.Config, error)
	password *security.Secret // nil for none
	schema   string
}

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	o, dsn, err := optionsOf(u)
	if err != nil {
		return nil, err
	}
	config, password, err := configOf(u, dsn)
	if err != nil {
		return nil, err
	}
	schema := cmp.Or(o.Schema, DefaultSchema)
	return &operator{config, password, schema}, checkSchema(schema)
}

// do runs statements in one transaction, and returns the first column of the last row. @ stands for
// the schema, and $1 and so on for the values, which have no quotes in them.
func (o *operator) do(ctx context.Context, sql string, values ...string) (string, error) {
	w := newWire(o.config, o.password, &Options{Schema: o.schema})
	c, err := w.dial(ctx, nil)
	if err != nil {
		return "", err
	}
	defer c.leave()
	for i, v := range values {
		if strings.ContainsAny(v, `'\`) {
			return "", fmt.Errorf("%w name %q", backend.ErrInvalid, v)
		}
		sql = strings.ReplaceAll(sql, fmt.Sprintf("$%d", i+1), "'"+v+"'")
	}
	sql = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT @.writes();" + sql + "; COMMIT"
	results, err := c.script(ctx, strings.ReplaceAll(sql, "@", quoted(o.schema)))
	if err != nil {
		return "", err
	}
	last := ""
	for _, r := range results {
		for _, row := range r.Rows {
			last = string(row[0])
		}
	}
	return last, nil
}

// below is what is at the name $1 or below it, in the column that takes the place of %s.
const below = `(%s = $1 OR starts_with(%[1]s, $1 || '/'))`

func (o *operator) Exists(ctx context.Context, name string) (bool, error) {
	there, err := o.do(ctx, "SELECT EXISTS (SELECT FROM @.member WHERE "+fmt.Sprintf(below, "line")+") OR EXISTS (SELECT FROM @.record WHERE "+fmt.Sprintf(below, "name")+")", name)
	return there == "t", err
}

func (o *operator) Remove(ctx context.Context, m backend.Member) error {
	_, err := o.do(ctx, "DELETE FROM @.member WHERE line = $1 AND pos::text = $2", m.Line, m.Key)
	return err
}

func (o *operator) Drop(ctx context.Context, election string) error {
	_, err := o.do(ctx, "DELETE FROM @.member WHERE line = $1; DELETE FROM @.record WHERE name = $1", election)
	return err
}

func (o *operator) Clear(ctx context.Context, name string) error {
	_, err := o.do(ctx, "DELETE FROM @.member WHERE "+fmt.Sprintf(below, "line")+"; DELETE FROM @.record WHERE "+fmt.Sprintf(below, "name"), name)
	return err
}
