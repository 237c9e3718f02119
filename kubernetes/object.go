package kubernetes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
)

// Everything is a Lease: sessions, members and records. One resource has one order of versions, and a list of it is a snapshot.
const (
	apiVersion = "coordination.k8s.io/v1"
	apiGroup   = "coordination.k8s.io"
	resource   = "leases"
	domain     = "succession-dev.github.io/" // of labels and annotations
)

// The labels. One of the first three says what an object is; its value stands for the prefix of the URL.
const (
	sessionLabel = domain + "session"
	memberLabel  = domain + "member"
	recordLabel  = domain + "record"

	idLabel    = domain + "id"    // the name of the object, by which a list or a watch can ask for several
	ofLabel    = domain + "of"    // the name of the session; of what belongs to none, of the object itself
	lineLabel  = domain + "line"  // of members, and of the record with the name of their line; of sessions, their own name; see [stream]
	dirLabel   = domain + "dir"   // of records
	claimLabel = domain + "claim" // of claims: the key of the item
)

// kinds are the labels of which each object of this package has one.
var kinds = []string{sessionLabel, memberLabel, recordLabel}

// The annotations.
const (
	nameNote     = domain + "name"     // of the line or the record
	positionNote = domain + "position" // of a member: the resource version of its creation
	uidNote      = domain + "session-uid"
	sharedNote   = domain + "shared"
	itemNote     = domain + "item" // it belongs to no session
	subjectNote  = domain + "subject"

	ttlNote   = domain + "ttl"   // of a session, in ms
	burntNote = domain + "burnt" // of a session: members that never count, whenever they come to be

	absentNote  = domain + "absent"  // of a record: it has no value
	versionNote = domain + "version" // of a record: that of its value, if something else has been written since
	pinsNote    = domain + "pins"    // of the record of a line: the UIDs of pinned members, until they have gone
	guardsNote  = domain + "guards"  // of the record of a line: what writes that a member guards may reach

	holderNote   = domain + "holder"   // of a lock: its holder is a member of ours; see [Backend.holds]
	releasedNote = domain + "released" // of a lock: the time at which one of ours has cleared it

	stampNote = domain + "stamp" // makes each write change something: one that changes nothing leaves the version as it is
)

// An object is a Lease, or its metadata alone.
type object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   meta   `json:"metadata"`
	Spec       spec   `json:"spec,omitzero"`
}

type meta struct {
	Name              string            `json:"name,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

type spec struct {
	HolderIdentity       string `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds int64  `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          string `json:"acquireTime,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
	LeaseTransitions     int64  `json:"leaseTransitions,omitempty"`
}

// A patch is a JSON merge patch of an object. It is for one version of the object: any other one refuses it.
type patch struct {
	Metadata patchMeta `json:"metadata"`
	Spec     any       `json:"spec,omitempty"`
}

type patchMeta struct {
	ResourceVersion string             `json:"resourceVersion"`
	Labels          map[string]string  `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"` // nil takes one away
	// A list with one empty entry has the server keep no record of who set which field, which would be larger than all else
	// (server-side apply, "clearing managedFields").
	ManagedFields []struct{} `json:"managedFields"`
}

// patchOf returns a patch of o, as it was read. It notes the position of a member, and the version of the value of a record: the
// patch changes the version of the object.
func patchOf(o *object) *patch {
	p := &patch{Metadata: patchMeta{
		ResourceVersion: o.Metadata.ResourceVersion,
		Annotations:     map[string]*string{},
		ManagedFields:   make([]struct{}, 1),
	}}
	switch {
	case o.has(memberLabel):
		p.note(positionNote, strconv.FormatUint(o.position(), 10))
	case o.has(recordLabel) && o.recordVersion() != backend.Absent:
		p.note(versionNote, strconv.FormatInt(int64(o.recordVersion()), 10))
	}
	return p
}

// note sets an annotation; the empty value takes it away.
func (p *patch) note(key, value string) {
	p.Metadata.Annotations[key] = &value
	if value == "" {
		p.Metadata.Annotations[key] = nil
	}
}

// stamp makes the patch change something in any case.
func (p *patch) stamp() { p.note(stampNote, strings.ToLower(rand.Text())) }

// newLease returns a Lease that is to be created.
func newLease(name, of string, labels map[string]string) *object {
	labels[ofLabel] = of
	return &object{APIVersion: apiVersion, Kind: "Lease", Metadata: meta{Name: name, Labels: labels, Annotations: map[string]string{}}}
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// randomName returns a name that no other object ever has.
func randomName(kind string) string { return kind + "-" + strings.ToLower(rand.Text()) }

func (o *object) note(key string) string { return o.Metadata.Annotations[key] }

func (o *object) has(label string) bool { _, ok := o.Metadata.Labels[label]; return ok }

// version is the resource version. It was checked when the object was read.
func (o *object) version() int64 {
	n, _ := versionOf(o.Metadata.ResourceVersion)
	return n
}

// versionOf reads a resource version. They are numbers that grow, which is documented since Kubernetes 1.35 (KEP-5504), and has been so
// since API servers keep their data in etcd 3.
func versionOf(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("the resource version %.40q is no number", s)
	}
	return n, nil
}

// check fails if o is not what an API server answers with.
func (o *object) check() error {
	if o.Metadata.Name == "" || o.Metadata.UID == "" {
		return fmt.Errorf("it has an object without name or UID")
	}
	_, err := versionOf(o.Metadata.ResourceVersion)
	return err
}

// list returns a list that stands in an annotation. What cannot be read is empty.
func (o *object) list(key string) (l []string) {
	if err := json.Unmarshal([]byte(o.note(key)), &l); err != nil {
		return nil
	}
	return l
}

// listed returns l for an annotation.
func listed(l []string) string {
	if len(l) == 0 {
		return ""
	}
	b, _ := json.Marshal(l) // strings always marshal
	return string(b)
}

// now is the time as a Lease has it, for people: nothing rests on it.
func now() string { return stamped(time.Now()) }

func stamped(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// encode returns bytes as the holder of a Lease, which is text: as they are, if people can read them, and otherwise as base64 behind
// an equals sign.
func encode(b []byte) string {
	s := string(b)
	if s != "" && s[0] != '=' && utf8.Valid(b) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
		return s
	}
	return "=" + base64.StdEncoding.EncodeToString(b)
}

func decode(s string) ([]byte, error) {
	text, encoded := strings.CutPrefix(s, "=")
	if !encoded {
		return []byte(s), nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w value %.40q: it is not what this package writes", backend.ErrInvalid, s)
	}
	return b, nil
}

// position is that of a member. Before it is noted it is the version of the object, which is that of its creation unless somebody has
// rewritten it; see [session.noted].
func (o *object) position() uint64 {
	if n, err := versionOf(o.note(positionNote)); err == nil {
		return uint64(n)
	}
	return uint64(o.version())
}

// session returns the session of a member.
func (o *object) session() (name, uid string) { return o.Metadata.Labels[ofLabel], o.note(uidNote) }

func (o *object) isItem() bool   { return o.note(itemNote) != "" }
func (o *object) isShared() bool { return o.note(sharedNote) != "" }

// isPinned reports whether the record of its line says that the member stands without a session.
func (o *object) isPinned(record *object) bool {
	return o.isItem() || record != nil && slices.Contains(record.list(pinsNote), o.Metadata.UID)
}

// member returns the member that o is. record is that of its line, or nil for none.
func (o *object) member(line string, record *object) (backend.Member, error) {
	value, err := decode(o.Spec.HolderIdentity)
	if err != nil {
		return backend.Member{}, fmt.Errorf("%w: member %s of %s: %w", backend.ErrForeign, o.Metadata.Name, line, err)
	}
	return backend.Member{Line: line, Key: o.Metadata.Name, Position: o.position(), Value: string(value),
		Shared: o.isShared(), Pinned: o.isPinned(record)}, nil
}

// going reports whether this is a member or a session that was deleted, and is only kept for somebody who has asked for that (a finalizer).
// It has gone for all: what was deleted never stands again.
func (o *object) going() bool {
	return o.Metadata.DeletionTimestamp != "" && (o.has(memberLabel) || o.has(sessionLabel))
}

// recordVersion is the version of the value of a record: that of the object, or, if something else has been written into the
// object since, the one that is noted. o may be nil.
func (o *object) recordVersion() backend.Version {
	if o == nil || o.note(absentNote) != "" {
		return backend.Absent
	}
	if n, err := versionOf(o.note(versionNote)); err == nil {
		return backend.Version(n)
	}
	return backend.Version(o.version())
}

// said returns what a record says to those who watch a place: it is another text if the value or the pins have changed, and the same
// if only the guard list has. o may be nil.
func (o *object) said() string {
	if o == nil {
		return fmt.Sprint(backend.Absent)
	}
	return fmt.Sprint(o.recordVersion(), o.note(pinsNote))
}

// value returns the value of a record; o may be nil.
func (o *object) value() ([]byte, error) {
	if o.recordVersion() == backend.Absent {
		return nil, nil
	}
	return decode(o.Spec.HolderIdentity)
}

// header returns the header of a line, whose record is o, or nil.
func (o *object) header() (backend.Header, error) {
	value, err := o.value()
	if err != nil {
		return backend.Header{}, fmt.Errorf("%w: %w", backend.ErrHeader, err)
	}
	return backend.ParseHeader(value)
}

// dirOf returns the folder in which a record is.
func dirOf(name string) string {
	if d := path.Dir(name); d != "." {
		return d
	}
	return ""
}

// ttl returns the session time of a session. One that says none that is possible has the longest.
func (o *object) ttl() time.Duration {
	ms, err := strconv.ParseInt(o.note(ttlNote), 10, 64)
	if d := time.Duration(ms) * time.Millisecond; err == nil && ms < maxTTL.Milliseconds() && d >= minTTL {
		return d
	}
	return maxTTL
}
