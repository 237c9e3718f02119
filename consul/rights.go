package consul

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/naming"
)

// Rights returns the ACL policies for one election, on the prefix and the node of the URL: of a
// candidate, of an observer, and of an operator. Each begins with a line that says whose policy it
// is, and ends with an empty line. Rights sends nothing. It returns
// backend.ErrInvalid if a parameter is wrong or unknown.
func Rights(u *coordinator.URL, election string) (string, error) {
	_, _ = agentConfig(u) // the rights are the same for every agent and token
	o, err := optionsOf(u)
	if err != nil {
		return "", err
	}
	o.Node, o.Prefix = cmp.Or(o.Node, defaultNode), strings.Trim(o.Prefix, "/")
	candidate, observer, operator := o.policies(election)
	if o.AgentNode {
		return "# session_prefix \"\" is the right to end every session of the cluster, those of other applications too: write in its\n" +
			"# place a rule for each agent that is talked to, as in session \"web-1\" { policy = \"write\" }\n\n" +
			"# a candidate\n" + candidate + "\n# who only looks, and can end the sessions of candidates\n" + observer + "\n# an operator\n" + operator, nil
	}
	return "# a candidate\n" + candidate + "\n# who only looks: with node=" + o.observers() + " in the URL\n" + observer + "\n# an operator\n" + operator, nil
}

// observers returns the node for the sessions of observers. A token that may make sessions on a
// node may end all sessions of that node, and with them the terms of their leaders.
func (o *Options) observers() string { return o.Node + "-observers" }

// policies returns what a token needs for one election.
func (o *Options) policies(election string) (candidate, observer, operator string) {
	key := o.below() + election
	rules := func(policy, fence string) string {
		var b strings.Builder
		// The slash must not be left out: "jobs-eu" also begins with "jobs".
		fmt.Fprintf(&b, "key_prefix %q { policy = %q }\n", key+"/", policy)
		fmt.Fprintf(&b, "key %q { policy = %q }\n", key, policy)
		fmt.Fprintf(&b, "key %q { policy = %q }\n", key+"~", policy)
		fmt.Fprintf(&b, "key %q { policy = %q }\n", key+naming.Fence, fence)
		fmt.Fprintf(&b, "key %q { policy = %q }\n", key+naming.History, policy)
		fmt.Fprintf(&b, "key %q { policy = %q }\n", key+naming.Unready, policy)
		fmt.Fprintf(&b, "key_prefix %q { policy = %q }\n", key+naming.Unready+"/", policy)
		return b.String()
	}
	session := func(node string) string {
		if o.AgentNode {
			return "session_prefix \"\" { policy = \"write\" }\n" // the node of any agent
		}
		return fmt.Sprintf("session %q { policy = \"write\" }\n", node)
	}
	candidate = rules("write", "read") + session(o.Node)
	observer = rules("read", "read") + session(o.observers())
	operator = rules("write", "write") + session(o.Node)
	if !o.AgentNode {
		operator += fmt.Sprintf("node %q { policy = \"write\" }\nnode %q { policy = \"write\" }\n", o.Node, o.observers())
	}
	return candidate, observer, operator
}

// rights returns what a candidate's token needs, for error messages.
func (o *Options) rights() string {
	candidate, _, _ := o.policies("NAME")
	text := strings.Join(strings.Split(strings.TrimSpace(candidate), "\n"), " ")
	if !o.AgentNode {
		text += fmt.Sprintf("; and whoever registers the node, node %q { policy = \"write\" }", o.Node)
	}
	return text + "; " + kit.RightsHint
}
