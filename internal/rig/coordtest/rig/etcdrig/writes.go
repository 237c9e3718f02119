package etcdrig

import (
	"bytes"
	"slices"
	"sync"
)

// writes are the newest messages by which a client has changed something. They are seen before they are sent, and so tell the proxy,
// which sees bytes alone, which of these are such a message.
type writes struct {
	mu       sync.Mutex
	messages [][]byte
}

// remembered is how many messages may be on the way from the client to its proxy.
const remembered = 16

// sends says that the client is about to send the message.
func (w *writes) sends(message []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages = append(w.messages, bytes.Clone(message))
	w.messages = w.messages[max(0, len(w.messages)-remembered):]
}

// matches reports whether one of the messages is among these bytes.
func (w *writes) matches(request []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.messages, func(message []byte) bool { return bytes.Contains(request, message) })
}
