package coordtest

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"time"
)

// linkPatience is how long a new leader may take to listen to its followers.
const linkPatience = 2 * time.Second

// A link carries what one server of an ensemble sends to another, and the answers.
// Both servers dial: each pair has two links.
type link struct {
	quorum, election *Proxy
}

// connect makes the links between all servers.
func (z *ZooKeeper) connect(peers []peer) error {
	z.links = make([][]*link, len(peers))
	for i := range peers {
		z.links[i] = make([]*link, len(peers))
		for j, to := range peers {
			if i == j {
				continue
			}
			quorum, err := StartProxy(loopback(to.quorum))
			if err != nil {
				return err
			}
			// A follower often calls its new leader before that one listens. It would try
			// again if its call was refused, and begins the election anew if it is hung up on.
			quorum.change(func() { quorum.patience = linkPatience })
			z.links[i][j] = &link{quorum: quorum}
			if z.links[i][j].election, err = StartProxy(loopback(to.election)); err != nil {
				return err
			}
		}
	}
	for i, from := range peers {
		for j := range i {
			z.links[j][i].showLinkBack(loopback(peers[j].election), z.links[i][j])
			z.links[i][j].showLinkBack(loopback(from.election), z.links[j][i])
		}
	}
	return nil
}

// showLinkBack makes the server behind l call back on the link back. Of two servers
// the one with the smaller id says where it is to be called for elections, and hangs
// up: the other calls that address, not the one in its own configuration
// (QuorumCnxManager.java, initiateConnection and handleConnection).
func (l *link) showLinkBack(own string, back *link) {
	// All ports have five digits, so the length that precedes the address holds.
	from, to := []byte(own), []byte(back.election.Addr())
	l.election.change(func() {
		l.election.rewrite = func(b []byte) []byte { return bytes.Replace(b, from, to, 1) }
	})
}

// Isolate cuts the server off from the other servers of its ensemble, in both
// directions and without closing a connection; clients still reach it. It needs the
// option Links.
func (z *ZooKeeper) Isolate(s *Server) error {
	if z.links == nil {
		return errors.New("isolate: the ZooKeeper was started without the option Links")
	}
	for i := range z.servers {
		for j := range z.servers {
			if i != j && (z.servers[i] == s || z.servers[j] == s) {
				z.links[i][j].quorum.Cut()
				z.links[i][j].election.Cut()
			}
		}
	}
	return nil
}

// Heal undoes every Isolate: what was held back is delivered.
func (z *ZooKeeper) Heal() {
	for _, l := range z.allLinks() {
		l.quorum.Heal()
		l.election.Heal()
	}
}

func (z *ZooKeeper) allLinks() []*link {
	var all []*link
	for _, row := range z.links {
		for _, l := range row {
			if l != nil {
				all = append(all, l)
			}
		}
	}
	return all
}

// ports returns where the link is to be dialed.
func (l *link) ports() peer {
	return peer{quorum: portOf(l.quorum), election: portOf(l.election)}
}

func portOf(p *Proxy) int {
	_, port, err := net.SplitHostPort(p.Addr())
	if err != nil {
		panic(err) // the address of a listener
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return n
}

func (l *link) close() {
	l.quorum.Close()
	if l.election != nil {
		l.election.Close()
	}
}
