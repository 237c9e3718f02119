package local

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseCounter reads the contents of a counter.
func parseCounter(file []byte) (uint64, error) {
	body, err := unseal(kindCounter, file)
	if err != nil {
		return 0, err
	}
	digits, ok := strings.CutSuffix(string(body), "\n")
	if !ok {
		return 0, errors.New("it is cut off")
	}
	return parseNumber(digits)
}

// formatNext returns the contents of a @next. All have the same length.
func formatNext(next, synced uint64) []byte {
	return seal(kindNext, fmt.Appendf(nil, "%020d %020d\n", next, synced))
}

// parseNext reads what formatNext wrote, and nothing else.
func parseNext(file []byte) (next, synced uint64, err error) {
	body, err := unseal(kindNext, file)
	if err != nil {
		return 0, 0, err
	}
	const digits = 20
	if len(body) == 2*digits+2 && body[digits] == ' ' && body[2*digits+1] == '\n' {
		next, err = strconv.ParseUint(string(body[:digits]), 10, 64)
		if err == nil {
			synced, err = strconv.ParseUint(string(body[digits+1:2*digits+1]), 10, 64)
		}
	}
	if err != nil || next == 0 || next > synced || synced >= limit {
		return 0, 0, errors.New("it is not written as it should be")
	}
	return next, synced, nil
}
