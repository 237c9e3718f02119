// Package fence refuses the writes of deposed leaders, where they are written to.
//
// A process can be paused between the moment at which it checks that it leads and the
// moment at which its write takes effect. Another process leads by then, and nothing in the paused
// one can prevent the write. The receiver can: each term has a fencing token that is larger than
// those of all terms before it (elect.Term Token), the leader sends it with each write, and the
// receiver remembers the largest token that it has seen and refuses smaller ones. This package is
// that receiver, for four kinds of resources:
//
//	Checker    what one process keeps in memory, or writes by itself
//	SQL        what a database keeps: SQLite, PostgreSQL, MySQL
//	Handler    what a service does at the request of others, by HTTP
//	File       a file, and all that processes on one machine do one at a time
//
// A resource is all that belongs together: an account, a folder, or everything that the
// leaders of one election write to. A token that is refused is a [*StaleError], which
// matches [ErrStale]. It means: deposed, stop.
//
// # What a token does
//
// When a token has been shown to a resource, no later write with a smaller token is done there,
// whatever clocks, pauses and the network do. So the leader's first act is to show its token,
// before it reads: nobody else then changes what it has read. To read with a token is to show it.
//
// The comparison and the write must be one atomic step. A receiver that compares first and
// writes afterwards can be paused in between, and then writes what a later leader has
// overwritten already. So no call of this package only compares:
//
//   - [Checker.Do] and [File.Do] run a function, and admit no other token until it has returned.
//   - [SQL.Raise] writes the token in the caller's transaction, and so holds the row of the
//     fence until that transaction ends.
//
// An equal token passes, because a term writes more than once. Writes of one term may run at the
// same time: the leader knows its own writes.
//
// # What it does not do
//
// It says nothing about which of two leaders leads now. A deposed leader may write until a
// later one has shown its token.
//
// It undoes nothing. What a deposed leader wrote before stays, also half of a job. The next leader
// reads what is there, and goes on from it.
//
// It protects only writes that compare tokens. One script that writes without a token undoes all of
// it. A token that is kept in one place does not protect another: a row of a database does not
// protect a file.
//
// It is not a secret, and proves nothing. Everybody who may write can show a large number, and lock
// out every leader. So let nobody else show tokens.
//
// # When tokens are too small
//
// Tokens of one election grow for ever: across sessions, restarts, the deletion of the
// election, and a migration to another coordinator, which raises the fence of the smaller
// side so that no token falls (package migrate). They are numbers of the coordinator's log,
// so they fall in these cases, and every leader is then refused:
//
//   - the coordinator was restored from a backup, or rebuilt;
//   - the election was begun anew on another coordinator, without a migration;
//   - the resource is written to by another election, or was before. Tokens of two
//     elections do not compare: one resource, one election.
//
// Never lower what the resource remembers: the writes that it is there to refuse may still
// be on their way. Raise the tokens instead. Stop all candidates, look up the largest token
// that a resource has seen ([StaleError] Largest, [Checker.Seen], the table, the file with
// the token), run
//
//	succession fence NAME --at-least LARGEST
//
// or call RaiseFence of an operate.Operator (package elect/operate), and start the candidates. Each
// later token is larger. Only if somebody has shown a number that no leader had, and that no fence
// can pass, remove what the resource remembers, by hand, while no candidate runs.
//
// A token is at least 1. A program that sends 0 has forgotten its token, and is refused with
// [ErrInvalid].
//
// # SQL
//
// [SQL.Schema] is the migration: one table that has a row for each resource. Each
// transaction of a leader begins with [SQL.Raise]:
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	if err := fences.Raise(ctx, tx, "accounts", term.Token()); err != nil {
//		return err
//	}
//	// read and write what belongs to "accounts", in tx
//	return tx.Commit()
//
// Raise is one statement that inserts the row or sets it to the larger of two tokens (on
// MySQL a second one reads it). It takes the lock on the row whether the token is larger,
// equal or smaller, and the database keeps that lock until the transaction ends. So
// transactions on one resource run one after the other. Of two leaders, either the earlier
// one's transaction is over when the later one's begins to read, or it finds the larger
// token and is refused.
//
// READ COMMITTED suffices, the default of PostgreSQL: the statement compares with the row as
// it is when the lock is granted, and each statement behind it sees what was committed before.
// REPEATABLE READ and SERIALIZABLE are as good. With these two, a transaction on PostgreSQL that
// has waited for the lock fails with a serialization error (SQLSTATE 40001). That is no refusal:
// begin it again. On SQLite all transactions are serializable, and one writes at a time; set a busy
// timeout.
//
// Raise must come first. Data that a transaction has read before Raise may be older than the last
// write of the leader before. And the transaction must be committed, also if it only reads: a token
// that is rolled back was not shown.
//
// A token in a column of each row protects less: only that row, once the later leader has written
// it, and not a row that is deleted and inserted again. Use it if that is enough, and transactions
// on one resource should not wait for each other:
//
//	ALTER TABLE account ADD COLUMN token BIGINT NOT NULL DEFAULT 0;
//	UPDATE account SET balance = $1, token = $2 WHERE id = $3 AND token <= $2;
//
// [Updated] says whether the statement has changed the row. Two transactions with the same
// row wait for each other here, too, and the second compares with what the first has
// committed. Do not replace the predicate by a SELECT: the row may change before the UPDATE.
//
// # HTTP
//
// A leader sends its token as the request header Succession-Token, in decimal. A [Transport] does
// that, and sends nothing when the term is over. In a shell it is
//
//	curl -H "Succession-Token: $SUCCESSION_TOKEN" ...
//
// under "succession run". The status codes are those of a conditional request with If-Match
// (RFC 9110, section 13.1.1; RFC 6585, section 3):
//
//	412 Precondition Failed      a larger token has been seen: the Succession-Token of the response, 0 if not known
//	428 Precondition Required    the request has no token, and its method is not safe
//	400 Bad Request              the token is no number from 1 to 2^64-1 in decimal, or there are several
//
// [Handler] is for services that do their work themselves: a handler runs in [Checker.Do]. A
// service that keeps everything in a database needs no Checker. It calls [RequestToken],
// [SQL.Raise] in its transaction, and [Error].
//
// # Where to begin
//
// If the data are in a database, use SQL. If they can be in the coordinator itself, use
// elect.Term Put, and nothing of this package. If the receiver can do neither, put a service
// that can in front of it.
package fence
