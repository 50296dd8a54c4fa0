package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// lingering is how long the rest of a body that was refused is taken in, so that a client that is still sending gets to
// read the answer.
const lingering = time.Second

// arrival is a body on its way. It is received before its request takes a place, and read from memory then. Where
// requests take no places it is read from the connection.
type arrival struct {
	io.ReadCloser                 // the connection's
	ctx           context.Context // of the request, which ends when the client goes away
	announced     int64           // its size; -1 if the client didn't say

	received  []byte
	whole     bool         // received is all that there is
	reading   <-chan error // what has not ended in time; nil otherwise
	abandoned atomic.Bool  // nobody reads it; the others don't change any more then
}

func newArrival(r *http.Request) *arrival {
	return &arrival{ReadCloser: r.Body, ctx: r.Context(), announced: r.ContentLength}
}

// receive reads on until it has all, or so many bytes. If that takes longer than within, it fails with
// os.ErrDeadlineExceeded. The connection's own deadline isn't used for this: in HTTP/1 it ends the whole request,
// before it is answered.
func (a *arrival) receive(most int, within time.Duration) error {
	buffer := bytes.NewBuffer(a.received)
	left := int64(most - buffer.Len())
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(buffer, io.LimitReader(a.ReadCloser, left))
		read <- err
	}()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case err := <-read:
		a.received = buffer.Bytes()
		a.whole = err == nil && len(a.received) < most
		return err
	case <-late.C:
		a.reading = read
		return os.ErrDeadlineExceeded
	}
}

// reserve makes room for all that was announced.
func (a *arrival) reserve(most int) {
	if size := int(min(a.announced, int64(most))); size > len(a.received) {
		room := make([]byte, len(a.received), size+bytes.MinRead) // for the read that finds the end
		copy(room, a.received)
		a.received = room
	}
}

// abandon is for a body that nobody needs.
func (a *arrival) abandon() {
	a.received, a.whole = nil, false
	a.abandoned.Store(true)
}

// announce says in the answer that an HTTP/1 connection ends with it, if what comes next on it is the rest of the body:
// or else the server would wait for that before it answers.
func (a *arrival) announce(w http.ResponseWriter, r *http.Request) {
	if a != nil && a.abandoned.Load() && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// end is called once the request is answered. It keeps the server from waiting for what is left of the body.
func (a *arrival) end(w http.ResponseWriter) {
	if !a.abandoned.Load() {
		return
	}
	connection := http.NewResponseController(w)
	_ = connection.Flush() // fails if the client is gone
	if a.reading == nil {
		_ = connection.SetReadDeadline(time.Now().Add(lingering))
		return
	}
	_ = connection.SetReadDeadline(time.Now())
	<-a.reading // the server would lift the deadline to end it
}

// Read implements io.Reader. What was read isn't kept.
func (a *arrival) Read(p []byte) (int, error) {
	if !a.whole {
		return a.ReadCloser.Read(p)
	}
	n := copy(p, a.received)
	if a.received = a.received[n:]; len(a.received) > 0 {
		return n, nil
	}
	a.received = nil
	return n, io.EOF
}
