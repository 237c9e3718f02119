package postgres

import (
	"cmp"

	"github.com/succession-dev/succession/backend/coordinator"
)

// rights returns what an administrator has to apply for the user of u: rights are on all elections
// of a schema, and on no table.
func rights(u *coordinator.URL, _ string) string {
	schema, user := cmp.Or(u.Text("schema", ""), DefaultSchema), cmp.Or(u.Text("user", ""), "app")
	grants, err := Grants(schema, user, Candidate)
	if err != nil {
		return err.Error()
	}
	return grants
}

// setup returns what makes the schema of u.
func setup(u *coordinator.URL) (string, error) { return Schema(u.Text("schema", "")) }
