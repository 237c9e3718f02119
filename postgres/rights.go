package postgres

import "github.com/succession-dev/succession/backend/coordinator"

// rights returns what an administrator has to apply for the user of u, or for whom a client without one would be here: rights are on
// all elections of a schema, and on no table.
func rights(u *coordinator.URL, _ string) (string, error) {
	o, dsn, err := optionsOf(u)
	if err != nil {
		return "", err
	}
	role := u.Text("user", "")
	if role == "" {
		cfg, err := parse(u, dsn)
		if err != nil {
			return "", err
		}
		role = cfg.User
	}
	return Grants(o.Schema, role, Candidate)
}

// setup returns what makes the schema of u.
func setup(u *coordinator.URL) (string, error) {
	o, _, err := optionsOf(u)
	if err != nil {
		return "", err
	}
	return Schema(o.Schema)
}
