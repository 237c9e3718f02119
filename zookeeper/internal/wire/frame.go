package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// What the wire must know of the client protocol (ZooDefs.java, ClientCnxn.java,
// KeeperException.java). Every frame begins with its length in four bytes.
const (
	opCreate    = 1
	opDelete    = 2
	opExists    = 3
	opGetData   = 4
	opSetData   = 5
	opChildren2 = 12
	opMulti     = 14
	opClose     = -11
	opAuth      = 100

	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4

	codeNoNode         = -101
	codeNoAuth         = -102
	codeBadVersion     = -103
	codeNodeExists     = -110
	codeNotEmpty       = -111
	codeSessionExpired = -112
	codeSessionMoved   = -118
	CodeLocalSession   = -120 // EPHEMERALONLOCALSESSION
	codeAuthRequired   = -124 // SESSIONCLOSEDREQUIRESASLAUTH, whatever the scheme
	CodeQuota          = -125 // QUOTAEXCEEDED
	CodeThrottled      = -127 // THROTTLEDOP: not carried out, to be repeated

	eventCreated         = 1
	eventDeleted         = 2
	eventDataChanged     = 3
	eventChildrenChanged = 4

	stateSyncConnected = 3
)

const (
	maxHandshake = 1 << 10  // a ConnectResponse has about 40 bytes
	MaxFrame     = 16 << 20 // a list of a million members called n_, or 280,000 as Curator calls them
)

var errFrame = errors.New("not a frame of the ZooKeeper protocol")

// readFrame reads one frame into buf, or into a larger buffer, and returns it with its
// length in front. If an answer is longer than MaxFrame, readFrame returns one without a body in its place, whose
// code is the length as a negative number: the request fails, and the connection goes on.
func readFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	if cap(buf) < 4 {
		buf = make([]byte, 4, 512)
	}
	buf = buf[:4]
	if _, err := io.ReadFull(r, buf); err != nil {
		return buf, err
	}
	n := int64(binary.BigEndian.Uint32(buf))
	if limit == MaxFrame && MaxFrame < n && n <= math.MaxInt32 {
		return readTooLong(r, buf, n)
	}
	if n > int64(limit) {
		return buf, fmt.Errorf("%w: length %d, at most %d are taken", errFrame, n, limit)
	}
	total := 4 + int(n)
	if cap(buf) < total {
		buf = append(make([]byte, 0, total), buf...)
	}
	buf = buf[:total]
	_, err := io.ReadFull(r, buf[4:])
	return buf, err
}

// readTooLong is readFrame for an answer of n bytes.
func readTooLong(r io.Reader, buf []byte, n int64) ([]byte, error) {
	buf = append(buf, make([]byte, replyLength)...)
	if _, err := io.ReadFull(r, buf[4:]); err != nil {
		return buf, err
	}
	binary.BigEndian.PutUint32(buf, replyLength)
	binary.BigEndian.PutUint32(buf[16:], uint32(-n)) // the code
	_, err := io.CopyN(io.Discard, r, n-replyLength)
	return buf, err
}

// A cursor reads the fields of a frame. Once a field is missing, bad is set, and all that
// follow are zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.bad, c.b = true, nil
		return nil
	}
	f := c.b[:n]
	c.b = c.b[n:]
	return f
}

func (c *cursor) int32() int32 {
	if f := c.take(4); f != nil {
		return int32(binary.BigEndian.Uint32(f))
	}
	return 0
}

func (c *cursor) int64() int64 {
	if f := c.take(8); f != nil {
		return int64(binary.BigEndian.Uint64(f))
	}
	return 0
}

func (c *cursor) bool() bool {
	f := c.take(1)
	return f != nil && f[0] != 0
}

// text reads a string or a buffer; a null one has the length -1.
func (c *cursor) text() string {
	n := c.int32()
	if n == -1 {
		return ""
	}
	return string(c.take(int(n)))
}

// A WatchKey names one registration for a notice. Client and server keep a separate table
// for each kind.
type WatchKey struct {
	Path string
	Kind WatchKind
}

// A WatchKind says what a registration is for.
type WatchKind byte

const (
	WatchData     WatchKind = iota + 1 // on a znode that was there
	WatchExists                        // on a znode that was not there
	WatchChildren                      // on the list of children
)

// A request is what the wire remembers of a request until it is answered.
type request struct {
	op    int32
	path  string    // only if watch
	watch WatchKind // what the request registers for; 0 for nothing
}

// parseRequest reads a whole outgoing frame.
func parseRequest(frame []byte) (xid int32, r request, err error) {
	c := cursor{b: frame}
	if n := c.int32(); int(n) != len(c.b) || c.bad {
		return 0, r, fmt.Errorf("%w: the client wrote other than one whole frame", errFrame)
	}
	xid, r.op = c.int32(), c.int32()
	switch r.op {
	case opGetData, opExists, opChildren2:
		path := c.text()
		if c.bool() {
			r.path, r.watch = path, WatchData
			if r.op == opChildren2 {
				r.watch = WatchChildren
			}
		}
	}
	if c.bad {
		return 0, r, fmt.Errorf("%w: request is too short", errFrame)
	}
	return xid, r, nil
}

// A handshake is the request or the answer that a connection begins with.
type handshake struct {
	session int64
	timeout int32 // milliseconds
}

func parseConnectRequest(frame []byte) (h handshake, err error) {
	c := cursor{b: frame}
	c.int32() // length
	c.int32() // protocol version
	c.int64() // last zxid seen
	h.timeout, h.session = c.int32(), c.int64()
	if c.bad {
		return h, fmt.Errorf("%w: connect request is too short", errFrame)
	}
	return h, nil
}

// withZxid returns the connect request with zxid as the last that the client has seen. A
// server that has not come so far refuses it (ZooKeeperServer.java, processConnectRequest).
func withZxid(frame []byte, zxid int64) []byte {
	frame = bytes.Clone(frame)
	binary.BigEndian.PutUint64(frame[8:], uint64(zxid)) // behind length and protocol version
	return frame
}

func parseConnectResponse(frame []byte) (h handshake, err error) {
	c := cursor{b: frame}
	c.int32() // length
	c.int32() // protocol version
	h.timeout, h.session = c.int32(), c.int64()
	c.text() // password
	if c.bad {
		return h, fmt.Errorf("%w: connect response is too short", errFrame)
	}
	return h, nil
}

// replyLength is the length of a replyHeader.
const replyLength = 16

// A replyHeader stands in front of every answer and every event.
type replyHeader struct {
	xid  int32
	zxid int64
	code int32
}

func parseReply(frame []byte) (h replyHeader, body cursor, err error) {
	c := cursor{b: frame}
	c.int32() // length
	h = replyHeader{c.int32(), c.int64(), c.int32()}
	if c.bad {
		return h, c, fmt.Errorf("%w: answer is too short", errFrame)
	}
	return h, c, nil
}

// multiCode returns the code in the results of a multi that says that the session has
// expired or moved, or 0. When a multi fails, every result is an error, and that code is
// among them and not in the header (FinalRequestProcessor.java).
func multiCode(body cursor) int32 {
	for !body.bad {
		kind, done := body.int32(), body.bool()
		body.int32()
		if done || kind != -1 {
			return 0
		}
		if code := body.int32(); code == codeSessionExpired || code == codeSessionMoved {
			return code
		}
	}
	return 0
}

// parseEvent reads the body of an event.
func parseEvent(body cursor) (kind int32, path string, err error) {
	kind = body.int32()
	body.int32() // state
	path = body.text()
	if body.bad {
		return 0, "", fmt.Errorf("%w: event is too short", errFrame)
	}
	return kind, path, nil
}

// appendEvent appends the frame of an event upon which the client drops its registration
// under key and tells those that wait for it.
func appendEvent(b []byte, key WatchKey) []byte {
	kind := int32(eventDataChanged)
	switch key.Kind {
	case WatchExists:
		kind = eventCreated
	case WatchChildren:
		kind = eventChildrenChanged
	}
	put := func(v int32) { b = binary.BigEndian.AppendUint32(b, uint32(v)) }
	put(int32(16 + 12 + len(key.Path)))
	put(xidEvent)
	b = binary.BigEndian.AppendUint64(b, ^uint64(0)) // zxid -1, as servers send it
	put(0)
	put(kind)
	put(stateSyncConnected)
	put(int32(len(key.Path)))
	return append(b, key.Path...)
}

// appendAuth appends the frame that shows credentials of the scheme digest.
func appendAuth(b []byte, d *Auth) []byte {
	const scheme = "digest"
	put := func(v int32) { b = binary.BigEndian.AppendUint32(b, uint32(v)) }
	credentials := d.User + ":" + d.Password
	put(int32(20 + len(scheme) + len(credentials)))
	put(xidAuth)
	put(opAuth)
	put(0) // type
	put(int32(len(scheme)))
	b = append(b, scheme...)
	put(int32(len(credentials)))
	return append(b, credentials...)
}

// fires returns the kinds of registration that an event ends, as the client library does it
// (notifyWatches in conn.go of go-zookeeper/zk).
func fires(kind int32) []WatchKind {
	switch kind {
	case eventCreated:
		return []WatchKind{WatchExists}
	case eventDataChanged:
		return []WatchKind{WatchExists, WatchData}
	case eventChildrenChanged:
		return []WatchKind{WatchChildren}
	case eventDeleted:
		return []WatchKind{WatchExists, WatchData, WatchChildren}
	}
	return nil
}

// committed reports whether an answer with this code to this operation proves that a quorum
// has accepted a write of the session. Every multi is proposed, even one that fails or only
// checks; of the other writes, those that took effect (PrepRequestProcessor.java,
// ProposalRequestProcessor.java).
func committed(op, code int32) bool {
	switch op {
	case opMulti:
		switch code {
		case 0, codeNoNode, codeNoAuth, codeBadVersion, codeNodeExists, codeNotEmpty:
			return true
		}
	case opCreate, opDelete, opSetData:
		return code == 0
	}
	return false
}
