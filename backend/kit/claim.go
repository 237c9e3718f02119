package kit

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// Subject names an item in the value of a claim: by its key and its position. No other item of any line
// has the same subject. The value of a claim ends with the subject of its item, behind a newline.
func Subject(item backend.Member) string { return fmt.Sprintf("%s %d", item.Key, item.Position) }

// SubjectOf returns the subject of the item that a claim is for, or false if the member is no claim.
func SubjectOf(claim backend.Member) (subject string, ok bool) {
	at := strings.LastIndexByte(claim.Value, '\n')
	return claim.Value[at+1:], at >= 0 && claim.Shared
}

// CheckClaim returns a [backend.ErrInvalid] if value is not that of a claim for the item.
func CheckClaim(value string, item backend.Member) error {
	if err := backend.CheckName(item.Line); err != nil {
		return err
	}
	if !strings.HasSuffix(value, "\n"+Subject(item)) {
		return fmt.Errorf("%w value %.40q of a claim: it must end with a newline and %q, which is its item", backend.ErrInvalid, value, Subject(item))
	}
	return backend.CheckValue(value)
}

// FirstFree decides for all drivers which item is the first that nobody claims. It returns the
// first item that is the subject of no claim, or false if each item is claimed.
//
// It fails with [backend.ErrForeign] if one of the claims is no claim, or if a member in front of
// that item is no item.
func FirstFree(items, claims []backend.Member) (item backend.Member, free bool, err error) {
	taken := make(map[string]bool, len(claims))
	for _, m := range claims {
		subject, ok := SubjectOf(m)
		if !ok {
			return item, false, Foreign(m, "claim")
		}
		taken[subject] = true
	}
	for _, m := range items {
		if !m.Pinned {
			return item, false, Foreign(m, "item")
		}
		if !taken[Subject(m)] {
			return m, true, nil
		}
	}
	return item, false, nil
}

// ClaimedBefore reports whether a claim for the same item as m stands in front of m.
func ClaimedBefore(m backend.Member, claims []backend.Member) bool {
	subject, _ := SubjectOf(m)
	for _, o := range claims {
		if s, ok := SubjectOf(o); ok && s == subject && o.Position < m.Position {
			return true
		}
	}
	return false
}

// Foreign returns a [backend.ErrForeign] that says what to do about m, which stands where only
// members of another kind may stand.
func Foreign(m backend.Member, kind string) error {
	return fmt.Errorf("%w: the member %s of %s with the value %.40q is no %s: remove it if it does not belong there", backend.ErrForeign, m.Key, m.Line, m.Value, kind)
}
