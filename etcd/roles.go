package etcd

import (
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/naming"
)

// Rights returns the commands that make the roles for one election, under the prefix of the URL: of
// a candidate, of an observer, and of an operator. Each begins with a line that says whose role it
// is, and ends with an empty line. Rights sends nothing. It returns
// backend.ErrInvalid if a parameter is wrong or unknown.
func Rights(u *coordinator.URL, election string) (string, error) {
	if _, _, _, err := optionsOf(u); err != nil {
		return "", err
	}
	key := prefixOf(u.Path) + election
	commands := func(role, header, fence, below string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "etcdctl role add %s\n", role)
		for _, r := range keysOf(key, header, fence, below) {
			fmt.Fprintf(&b, "etcdctl role grant-permission %s %s\n", role, r.args())
		}
		return b.String()
	}
	return "# a candidate\n" + commands("candidate", "write", "read", "write") +
		"\n# who only looks\n" + commands("observer", "read", "read", "read") +
		"\n# an operator\n" + commands("operator", "write", "write", "write"), nil
}

// keysOf returns the rights on the keys of an election: its header, the copy of its fence, and its
// members, its history and the records of unready members.
func keysOf(key, head, fence, below string) []right {
	// The prefix must have the slash: "jobs-eu" also begins with "jobs".
	folder := func(dir string) right { return right{below, dir, clientv3.GetPrefixRangeEnd(dir)} }
	return []right{
		folder(key + "/"),
		{op: head, key: key},
		{op: fence, key: key + naming.Fence},
		{op: below, key: key + naming.History},
		{op: below, key: key + naming.Unready},
		folder(key + naming.Unready + "/"),
	}
}
