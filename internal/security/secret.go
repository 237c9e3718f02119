package security

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
)

// A Secret is what a file or an environment variable contains, or what a function returns. It is safe for concurrent use.
type Secret struct {
	name      string // of the parameters, before -file and -env
	file, env string
	read      func() (string, error) // nil where it is in a file or in an environment variable

	mu       sync.Mutex
	accepted string    // the one that a server accepted last; empty for none
	refused  time.Time // since when servers have refused all; zero if they have not
}

// SecretOf takes the parameters name-file and name-env from u.
func SecretOf(u *coordinator.URL, name string) *Secret {
	return NewSecret(name, u.Text(name+"-file", ""), u.Text(name+"-env", ""))
}

// NewSecret returns the secret in a file or in an environment variable. Errors call it by the
// name.
func NewSecret(name, file, env string) *Secret { return &Secret{name: name, file: file, env: env} }

// SecretFrom returns the secret that read returns, which is empty for none.
func SecretFrom(read func() (string, error)) *Secret { return &Secret{read: read} }

// Named reports whether there is a secret: a file or a variable was named.
func (s *Secret) Named() bool { return s.file != "" || s.env != "" }

// Read reads the secret. From a file it takes all but the line ends at the end. It returns
// the empty string if nothing was named, and [backend.ErrInvalid] if a parameter, or what it
// names, is wrong.
func (s *Secret) Read() (string, error) {
	secret, where := "", "the file "+s.file
	switch {
	case s.read != nil:
		return s.read()
	case !s.Named():
		return "", nil
	case s.file != "" && s.env != "":
		return "", invalid("parameters %s-file and %s-env: give one of them", s.name, s.name)
	case s.file != "":
		b, err := os.ReadFile(s.file)
		if err != nil {
			return "", invalid("parameter %s-file: %w", s.name, err)
		}
		secret = strings.TrimRight(string(b), "\r\n")
	default:
		secret, where = os.Getenv(s.env), "the environment variable "+s.env
	}
	if secret == "" {
		return "", invalid("the %s in %s is empty", s.name, where)
	}
	return secret, nil
}

// Use reads the secret and calls use with it, which shows it to a server. Its error is that of
// use. refused reports whether an error says that the server does not accept the secret.
//
// A secret is replaced at two places, one after the other: where it is kept, and at the
// servers. In between, the two differ. So Use calls use a second time if the secret is
// refused and has been replaced meanwhile, or else if a server has accepted another one before.
// It takes the one accepted before also if none can be read, as while the file is written.
func (s *Secret) Use(refused func(error) bool, use func(secret string) error) error {
	now, err := s.Read()
	before := s.before()
	switch {
	case err != nil && before == "":
		return err
	case err != nil:
		now = before
	}
	if err = s.show(now, use); err == nil || !refused(err) {
		return err
	}
	other := before
	if again, err := s.Read(); err == nil && again != now {
		other = again
	}
	if other != "" && other != now {
		if err = s.show(other, use); err == nil || !refused(err) {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused.IsZero() {
		s.refused = time.Now()
	}
	return err
}

// patience is how long secrets may be refused that were accepted before.
const patience = 10 * time.Second

// Unsettled reports whether a refusal may pass by itself: servers have accepted a secret before, and have refused all
// for a short time only. It may have been replaced at the servers and not yet in the file, or a server may lag
// behind the others.
func (s *Secret) Unsettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted != "" && (s.refused.IsZero() || time.Since(s.refused) < patience)
}

// show calls use, and notes the secret if the server has accepted it.
func (s *Secret) show(secret string, use func(string) error) error {
	err := use(secret)
	if err == nil {
		s.Accept(secret)
	}
	return err
}

// Accept notes that a server has accepted the secret. It is for one that was shown without [Secret.Use].
func (s *Secret) Accept(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted, s.refused = secret, time.Time{}
}

// before returns the secret that a server accepted last, or nothing.
func (s *Secret) before() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// A Login is the parameters of a URL that name a user, and the file or the environment
// variable that contains the password: user=, and password-file= or password-env=.
type Login struct {
	User     string // empty for none
	Password *Secret
}

// LoginOf takes the parameters from u.
func LoginOf(u *coordinator.URL) Login {
	return Login{User: u.Text("user", ""), Password: SecretOf(u, "password")}
}

// Read reads the password. It returns empty strings if no parameter names a user, and
// [backend.ErrInvalid] if a parameter, or what it names, is wrong.
func (l Login) Read() (user, password string, err error) {
	if (l.User == "") == l.Password.Named() {
		return "", "", invalid("parameters user, and password-file or password-env, go together")
	}
	password, err = l.Password.Read()
	return l.User, password, err
}
