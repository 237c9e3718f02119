package coordtest

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
)

// An asker asks servers by HTTP, as their operator does, with a new connection for each
// question. The zero value speaks no TLS.
type asker struct {
	certFile, keyFile string // TLS, with this certificate, which the server has too
	token             string // TLS, with this bearer token
}

// ask sends a request to the server at addr, a host:port.
func (a asker) ask(ctx context.Context, method, addr, path, body string) (status int, answer string, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	url := "http://" + addr + path
	if a.token != "" {
		url = "https://" + addr + path
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // as below
	}
	if a.certFile != "" {
		url = "https://" + addr + path
		cert, err := tls.LoadX509KeyPair(a.certFile, a.keyFile)
		if err != nil {
			return 0, "", err
		}
		transport.TLSClientConfig = &tls.Config{
			InsecureSkipVerify: true, // what it answers tells who it is
			Certificates:       []tls.Certificate{cert},
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
