// Package http stands in for net/http when the engines are built for the sandbox (plugins/go/README.md). Spiff reads
// URLs with it; there is no network, so that all that is left is the transport that refuses.
package http

import "io"

// Request is a request of which only the URL is known.
type Request struct {
	// Method is GET.
	Method string
	// URL is where to.
	URL string
}

// Response is the answer to a request.
type Response struct {
	// Body is its content.
	Body io.ReadCloser
}

// RoundTripper carries a request.
type RoundTripper interface {
	// RoundTrip answers a request.
	RoundTrip(*Request) (*Response, error)
}

// DefaultTransport carries all requests. Package spiff sets it, as it does for the real package.
var DefaultTransport RoundTripper

// Get asks the default transport.
func Get(url string) (*Response, error) {
	return DefaultTransport.RoundTrip(&Request{Method: "GET", URL: url})
}
