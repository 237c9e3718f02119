package postgres

import (
	"cmp"

	"github.com/succession-dev/succession/backend"
)

// rights returns what an administrator has to apply for the user of u: rights are on all elections of a schema, and on no table.
func rights(u *backend.URL, _ string) string {
	schema, user := cmp.Or(u.Text("schema", ""), DefaultSchema), cmp.Or(u.Text("user", ""), "app")
	grants, err := Grants(schema, user, Candidate)
	if err != nil {
		return err.Error()
	}
	return "-- Once, as the owner to be: succession postgres schema --schema " + schema + " | psql -1 DATABASE\n" + grants
}
