package zookeeper

import (
	"fmt"
	"path"
	"strings"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/naming"
)

// Rights returns the commands of ZooKeeper's shell that make the znodes of one election, under the prefix of the
// URL, with ACLs for a candidate, for an operator, and for everybody else, who may only look. The
// operator runs them, with digest:USER:HASH in place of CANDIDATE and of OPERATOR. Then nobody
// needs a right on the prefix, and a user with CREATE there has no power over the election. Rights
// sends nothing. It returns backend.ErrInvalid if a parameter is wrong or unknown.
func Rights(u *coordinator.URL, election string) (string, error) {
	if _, err := optionsOf(u); err != nil {
		return "", err
	}
	at := path.Join("/", u.Path, election)
	var b strings.Builder
	b.WriteString("# as the operator (addauth digest USER:PASSWORD): the folders above it, if they are missing;\n" +
		"# in one that is there, / among them, nobody else should have DELETE (getAcl, setAcl)\n")
	for i := 1; i < len(at); i++ {
		if at[i] == '/' {
			fmt.Fprintf(&b, "create %s \"\" OPERATOR:cdrwa,world:anyone:r\n", at[:i]) // without an ACL it would be everybody's
		}
	}
	b.WriteString("\n# the count of deletions beside it, if it is missing\n")
	fmt.Fprintf(&b, "create %s \"\" OPERATOR:cdrwa,world:anyone:r\n", beside(at, deletions))
	for _, part := range []struct {
		title  string
		znodes []znode
	}{
		{"the election", []znode{{"", "crwd"}, {naming.Fence, "r"}, {naming.History, "rw"}, {naming.Unready, "crwd"}}},
		{"its moves from one coordinator to another", []znode{
			{naming.Marks, "crwd"}, {naming.Guarded, "rw"}, {naming.History + naming.Note, "rw"}, {naming.Probe, "r"},
		}},
		{"its home, with package spread", []znode{{naming.Home, "rw"}}},
	} {
		fmt.Fprintf(&b, "\n# %s\n", part.title)
		for _, z := range part.znodes {
			fmt.Fprintf(&b, "create %s%s \"\" CANDIDATE:%s,OPERATOR:cdrwa,world:anyone:r\n", at, z.suffix, z.candidate)
		}
	}
	return b.String(), nil
}

// A znode is one of an election, with the rights of a candidate.
type znode struct{ suffix, candidate string }
