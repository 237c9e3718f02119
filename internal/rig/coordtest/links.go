package coordtest

import (
	"errors"
	"net"
	"strconv"
)

// connect makes the network between n servers, where one is wanted.
func (c *Cluster) connect(wanted bool, n int) (err error) {
	if wanted {
		c.network, err = newNetwork(n)
	}
	return err
}

// Linked reports whether the servers have networks of their own; see [Cluster.Isolate].
func (c *Cluster) Linked() bool { return c.network != nil }

// peerHost returns the address of server i for the others.
func (c *Cluster) peerHost(i int) string {
	if c.network == nil {
		return "127.0.0.1"
	}
	return c.network.ports[i].addr.String()
}

// peerAddr is peerHost with a port.
func (c *Cluster) peerAddr(i, port int) string {
	return net.JoinHostPort(c.peerHost(i), strconv.Itoa(port))
}

// add adds the next server. One in a network is for nobody outside to reach: a proxy
// listens for it, and calls it from within.
func (c *Cluster) add(s *Server) error {
	if c.network != nil {
		s.port = c.network.ports[len(c.servers)]
		front, err := startProxy(s.addr, s.port.dial)
		if err != nil {
			return err
		}
		c.fronts = append(c.fronts, front)
		s.addr = front.Addr()
	}
	c.servers = append(c.servers, s)
	return nil
}

// Isolate cuts the server off from the other servers, in both directions and without
// closing a connection; clients still reach all of them. It needs the option Links,
// which takes Linux and root.
func (c *Cluster) Isolate(s *Server) error {
	if s.port == nil {
		return errors.New("isolate: the servers were started without the option Links")
	}
	c.network.isolate(s.port)
	return nil
}

// Heal undoes every Isolate: of what was held back the last is delivered.
func (c *Cluster) Heal() {
	if c.network != nil {
		c.network.heal()
	}
}
