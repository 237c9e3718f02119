package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
)

// DefaultSchema is the name of the schema if none is given.
const DefaultSchema = "succession"

//go:embed schema.sql
var schemaSQL string

// format is the one of the schema that this version needs, and oldest the one of the oldest
// processes that can use a schema of that format. schema.sql says when they are raised.
const format, oldest = 3, 3

// schemaName is what a schema may be called: one word everywhere, and short enough for
// the names of channels, which have 63 bytes at most.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,23}$`)

func checkSchema(name string) error {
	if !schemaName.MatchString(name) || strings.HasPrefix(name, "pg_") {
		return fmt.Errorf("%w schema %q: use at most 24 lower-case letters, digits and underscores, and not pg_ in front", backend.ErrInvalid, name)
	}
	return nil
}

// quoted returns a name as SQL has it: without quotes a schema that is called as a word of SQL is, such as user, would be none.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Schema returns the statements that make the schema of that name, or that bring the schema of an
// older version to the format of this version. They are for people who run them with psql in one
// transaction (psql -v ON_ERROR_STOP=1 -1), as the owner of the schema. They do not change stored data, and processes
// go on meanwhile. If processes of older versions could not go on, the statements fail as long as
// there are sessions. Empty is [DefaultSchema]. Schema returns [backend.ErrInvalid] if no schema of
// this package can have that name.
func Schema(name string) (string, error) { return schemaOf(name, format, oldest) }

func schemaOf(name string, format, oldest int) (string, error) {
	if name == "" {
		name = DefaultSchema
	}
	if err := checkSchema(name); err != nil {
		return "", err
	}
	var functions []string
	for _, f := range ofFunction.FindAllStringSubmatch(schemaSQL, -1) {
		functions = append(functions, f[1])
	}
	return strings.NewReplacer("@", quoted(name), "{schema}", name, "{functions}", strings.Join(functions, ","),
		"{format}", strconv.Itoa(format), "{oldest}", strconv.Itoa(oldest)).Replace(schemaSQL), nil
}

// ofFunction finds the names of the functions that the schema makes.
var ofFunction = regexp.MustCompile(`FUNCTION @\.(\w+)\(`)

// A Grant says what a role may do.
type Grant string

const (
	// Candidate may do all that the methods of a session do.
	Candidate Grant = "candidate"
	// Observer may have sessions, look at everything, and end sessions whose time has come. It changes
	// nothing else. If its session time is an hour, nobody leads for that long after the next failover.
	Observer Grant = "observer"
	// Worker may guard its transactions, and has no session.
	Worker Grant = "worker"
)

// granted are the functions that a role may call. None has a right on a table.
var granted = map[Grant][]string{
	Observer: {
		"open(uuid,int,int)", "beat(uuid,int)", "reap(uuid[],bigint[],text)", "close(uuid)",
		"ahead(uuid,text,bigint,bool)", "stands(uuid,text,bigint)", "line(uuid,text,int)", "lines(uuid)", "survey(uuid)", "imported(uuid,text)", "free(uuid,text,text)",
		"get(uuid,text)", "list(uuid,text,bool)",
	},
	Candidate: {
		"confirm(text)",
		"join(uuid,bigint,text,bytea,bool,text,text,bigint,text)", "burn(uuid,bigint)", "leave(uuid,text,bigint)",
		"pin(uuid,text,bigint,bytea,bigint)", "append(uuid,text,bytea)", "remove(uuid,text,bigint,text,bigint)",
		"put(uuid,text,bytea,bigint,text,bigint)",
	},
	Worker: {"guard(text,bigint)"},
}

// Grants returns the statements that let a role do what the grant says, in the schema of that name.
// It returns [backend.ErrInvalid] if there is no such grant, or if no schema of this package can
// have that name.
func Grants(schema, role string, g Grant) (string, error) {
	if schema == "" {
		schema = DefaultSchema
	}
	if err := checkSchema(schema); err != nil {
		return "", err
	}
	functions := granted[g]
	if g == Candidate {
		functions = append(append(granted[Observer], functions...), granted[Worker]...)
	}
	if functions == nil {
		return "", fmt.Errorf("%w grant %q: it is %s, %s or %s", backend.ErrInvalid, g, Candidate, Observer, Worker)
	}
	in, to := quoted(schema), quoted(role)
	var b strings.Builder
	fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %s TO %s;\n", in, to)
	for _, f := range functions {
		fmt.Fprintf(&b, "GRANT EXECUTE ON FUNCTION %s.%s TO %s;\n", in, f, to)
	}
	return b.String(), nil
}

// EnsureSchema makes the schema of that name in the database of cfg if it does not exist, or brings
// it from an older format to the format of this version; see [Schema]. Empty is [DefaultSchema].
// EnsureSchema is one transaction, and blocks until that is done, or ctx ends. Several processes
// may call it at the same time. The role needs the right CREATE on the database, and then owns the
// schema, or it owns the schema already. EnsureSchema changes no schema of another role: if that is of
// an older format, it returns [backend.ErrDenied], or nil if the role may not even see that.
// [Backend.Session] makes a missing schema, and leaves an older one as it is.
func EnsureSchema(ctx context.Context, cfg *pgconn.Config, name string) error {
	if name == "" {
		name = DefaultSchema
	}
	err := checkSchema(name)
	if err == nil {
		w := newWire(func() (*pgconn.Config, error) { return cfg.Copy(), nil }, nil, &Options{Schema: name})
		defer w.close()
		var c *conn
		if c, err = w.dial(ctx, nil); err == nil {
			defer c.kill()
			err = c.ensure(ctx, name, true)
		}
	}
	return driver.Wrap("schema", name, err)
}

// ensure makes the schema if it is not there, or if upgrade says so is of an older format.
func (c *conn) ensure(ctx context.Context, name string, upgrade bool) error {
	if done, err := c.ensured(ctx, name, upgrade); err != nil || done {
		return err
	}
	create, err := Schema(name)
	if err != nil {
		return err
	}
	_, err = c.script(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"+create+"COMMIT")
	if !errors.Is(err, backend.ErrDenied) {
		return err
	}
	if _, end := c.script(ctx, "ROLLBACK"); end != nil {
		return end
	}
	if done, again := c.ensured(ctx, name, upgrade); done || again != nil { // another role has done it meanwhile
		return again
	}
	return fmt.Errorf("%w; this role must not make or change the schema %s: have an administrator apply what \"succession postgres schema\" prints, as its owner", err, name)
}

// ensured reports whether there is nothing for ensure to do.
func (c *conn) ensured(ctx context.Context, name string, upgrade bool) (bool, error) {
	there, err := c.hasSchema(ctx, name)
	if err != nil || !there || !upgrade {
		return there, err
	}
	return c.current(ctx, name)
}

// current reports whether the schema, which is there, is of this format or a newer one, or this
// role may not see that.
func (c *conn) current(ctx context.Context, name string) (bool, error) {
	rows, err := c.query(ctx, "SELECT format FROM "+quoted(name)+".meta")
	if errors.Is(err, backend.ErrDenied) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	r := rows[0]
	return r.int() >= format, r.err()
}

// unfit returns why a process of that format may have no session in the schema, whose formats these are.
func unfit(process, schema, oldest int64, name string) error {
	if process < oldest {
		return fmt.Errorf("%w version of this process: the schema %s has format %d, which is for processes of format %d and later, and this is of format %d: install a newer one",
			backend.ErrInvalid, name, schema, oldest, process)
	}
	return fmt.Errorf("%w schema %s: it has format %d, and this process needs %d: have its owner apply what \"succession postgres schema\" of this version prints", backend.ErrInvalid, name, schema, process)
}

// hasSchema reports whether the schema is there.
func (c *conn) hasSchema(ctx context.Context, name string) (there bool, err error) {
	rows, err := c.query(ctx, "SELECT to_regclass($1) IS NOT NULL", quoted(name)+".meta")
	if err != nil {
		return false, err
	}
	r := rows[0]
	return r.bool(), r.err()
}
