// An HTTP/2 server on golang.org/x/net/http2 (cleartext, prior knowledge) that responds as the TestApplication of
// test/grpc/http2/test-application.ts. It prints its port, and ends when its standard input ends.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

const maxHeaderListBytes = 16 << 10

// The server adds this to http.Server.MaxHeaderBytes.
const addedHeaderBytes = 10 * 32

func respond(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI == "/early" {
		io.WriteString(w, "early")
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.RequestURI == "/hold" {
		<-r.Context().Done()
		return
	}
	if length, isBig := strings.CutPrefix(r.RequestURI, "/big/"); isBig {
		if count, err := strconv.Atoi(length); err == nil {
			w.Write(bytes.Repeat([]byte("x"), count))
			return
		}
	}
	io.WriteString(w, "weir")
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	// The same limits as those of weir's server, where both have them.
	server := &http2.Server{
		MaxConcurrentStreams:         1024,
		MaxReadFrameSize:             16 << 10,
		MaxUploadBufferPerConnection: 1 << 20,
		MaxUploadBufferPerStream:     65535,
	}
	base := &http.Server{
		Handler:        http.HandlerFunc(respond),
		MaxHeaderBytes: maxHeaderListBytes - addedHeaderBytes,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go server.ServeConn(connection, &http2.ServeConnOpts{BaseConfig: base})
	}
}
