// Package group says which members are present, and divides work among them.
//
//	g := group.New(b, "collectors", &elect.Options{ID: "web-1"})
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
// All present are shared members of one line ([backend.Session] JoinShared), so that none waits for another.
// They go when they leave, or when their sessions end. A member's value is a record, written on
// condition that the member stands. Members that died leave their values; the next member that
// joins deletes them.
//
// # Who is present
//
// [Group.Follow] tells of each join and exit, with the values that members joined with: facts that
// do not change, such as an address. [Group.Members] looks once, and has the values that members
// have set since. To set a value wakes nobody, so it may change often, such as the progress of
// work. Look from time to time if you want to know it.
//
// # Who does what
//
// [Presence.Assign] gives each item to one present member. Each member computes by itself which
// items fall to it, from the items and the IDs of all that are present; none has two more than
// another. Two members can disagree about who is present for a moment. So a member only campaigns
// for the items that fall to it: it owns an item when it leads the item's election. When members
// come or go, it hands on what falls to others then, and campaigns for what falls to it.
// [Presence.AssignEach] does that also when the items change.
//
// # What it does not promise
//
// The coordinator decides who is present: a member that has died stands until its session has
// ended. Until then nobody owns its items. The same is true of a member that is cut off, from the
// moment in which it gives up its items.
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
