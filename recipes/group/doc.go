// Package group says who is present, and divides work over those who are.
//
//	g := group.New(b, "collectors", &group.Options{ID: "web-1"})
//	return g.Run(ctx, func(ctx context.Context, p *group.Presence) error { // and again, if the session was lost
//		return p.Assign(ctx, sources, func(ctx context.Context, source string, t *elect.Term) error {
//			return collect(ctx, source, t.Token()) // ctx ends when the source is another's
//		})
//	})
//
// # Lines and records
//
//	collectors-members    w1   w2   w3       who is present: all of them, in the order of joining
//	collectors-values     58        61       what w1 and w3 have set, under their positions
//	collectors-item-mail  w2                 an election for each item: its leader owns the item
//	collectors-item-web   w3 <- w1           w3 has to hand this one on, and w1 waits for it
//	collectors-owners     mail web           who owned each item last, and since when
//
// Those present are shared members of one line ([backend.Sharer]), so that none waits for another.
// They go when they leave, or when their sessions end. A member's value is a record, written on
// condition that the member stands; values that the dead have left behind are deleted by whoever
// joins next.
//
// # Who is present
//
// [Group.Follow] tells of each join and exit, with the values that members joined with: what is known of them for
// good, such as an address. [Group.Members] looks once, and has what they have set since. That wakes nobody: such
// values may change often, such as how far somebody has come, and whoever wants to know looks from time to time.
//
// # Who does what
//
// [Presence.Assign] gives each item to one of those present. Each member computes by itself which
// items fall to it, from the items and the IDs of those present; none has two more than another. Two members can disagree on these for a moment,
// so what falls to a member is only what it campaigns for: it owns an item when it leads the
// item's election. When others come or go, it hands on what falls to them, and campaigns for what
// falls to it by then. [Presence.AssignEach] does that also when the items change.
//
// # What it does not promise
//
// Who is present is as the coordinator sees it: a member that has died stands until its session
// has ended. For so long its items are nobody's, and so they are from the moment in which a member
// that is cut off gives them up.
//
// A group does not go through a migration (package migrate).
//
// # Other recipes
//
// This is the group membership of ZooKeeper's documentation, Curator's GroupMember and kazoo's
// Party, with values that can be changed. kazoo's SetPartitioner divides a set as Assign does, but
// has all members give up everything at each change, behind a barrier. etcd and Consul have keys
// that go with a lease or a session, and no recipe.
package group
