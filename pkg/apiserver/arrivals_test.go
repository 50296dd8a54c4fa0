package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// trickle is a request whose body is on its way.
type trickle struct {
	body   *io.PipeWriter
	answer chan metav1.Status
}

// widgetOf is the body of a widget, of about so many bytes.
func widgetOf(name string, size int) string {
	return fmt.Sprintf(`{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":%q},"spec":{"size":%q}}`, name, strings.Repeat("x", size))
}

// protocols are both that shards may speak.
func protocols(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Run("HTTP/1", func(t *testing.T) { test(t, false) })
	t.Run("HTTP/2", func(t *testing.T) { test(t, true) })
}

// patient is a client that sends bodies once the server reads them.
func (b *bed) patient(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	client := b.library(t)
	transport := client.Transport.(*http.Transport)
	transport.ForceAttemptHTTP2, transport.ExpectContinueTimeout = http2, patience
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	if http2 {
		transport.TLSClientConfig.NextProtos = nil
	}
	return client
}

func (b *bed) widgets(t *testing.T, cluster logicalcluster.Name, method string, body io.Reader) *http.Request {
	t.Helper()
	address := "https://localhost:" + b.port() + base + cluster.String() + apis + "/namespaces/default/widgets"
	request, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return request
}

// trickle begins a request, and returns when the server waits for its body.
func (b *bed) trickle(t *testing.T, client *http.Client, cluster logicalcluster.Name, method string) trickle {
	t.Helper()
	body, send := io.Pipe()
	reads := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	request := b.widgets(t, cluster, method, body)
	request.Header.Set("Expect", "100-continue")
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { close(reads) }}))
	answer := make(chan metav1.Status, 1)
	go func() {
		defer close(answer)
		response, err := client.Do(request)
		if err != nil {
			return // it was cancelled, or else nobody gets an answer
		}
		defer response.Body.Close()
		said := metav1.Status{}
		_ = json.NewDecoder(response.Body).Decode(&said)
		said.Code = int32(response.StatusCode)
		answer <- said
	}()
	t.Cleanup(func() {
		cancel()
		send.CloseWithError(context.Canceled)
		<-answer
	})
	select {
	case <-reads:
	case <-time.After(patience):
		t.Fatal("the body isn't read")
	}
	return trickle{body: send, answer: answer}
}

func (c trickle) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.body, text); err != nil {
		t.Errorf("sending: %v", err)
	}
}

func (c trickle) answered(t *testing.T) metav1.Status {
	t.Helper()
	select {
	case said, ok := <-c.answer:
		if !ok {
			t.Error("there is no answer")
		}
		return said
	case <-time.After(patience):
		t.Fatal("there is no answer")
		return metav1.Status{}
	}
}

func expectCode(t *testing.T, what string, said metav1.Status, code int32) {
	t.Helper()
	if said.Code != code {
		t.Errorf("%s is answered %d, want %d: %s", what, said.Code, code, said.Message)
	}
}

// TestBodiesThatTrickleTakeNoPlaces has more of them than there are places, of reads too: nobody wants their bodies, but
// HTTP/1 takes them in before it answers.
func TestBodiesThatTrickleTakeNoPlaces(t *testing.T) {
	const places = 2
	protocols(t, func(t *testing.T, http2 bool) {
		b := start(t, func(o *apiserver.Options) {
			for _, bound := range []*budget.Bound{budget.Reads, budget.ReadsPerConsumer, budget.Writes, budget.WritesPerConsumer} {
				o.Limits[bound] = places
			}
			o.Limits[budget.BodySeconds] = int(patience.Seconds())
		})
		client := b.patient(t, http2)
		var pending []trickle
		for range 2 * places {
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				begun := b.trickle(t, client, consumer, method)
				begun.send(t, "{")
				pending = append(pending, begun)
			}
		}
		for _, cluster := range []logicalcluster.Name{consumer, otherConsumer} {
			said := ask(t, client, b.widgets(t, cluster, http.MethodPost, strings.NewReader(widgetOf("one", 10))))
			expectCode(t, "a write in "+cluster.String(), said, http.StatusCreated)
			said = ask(t, client, b.widgets(t, cluster, http.MethodGet, http.NoBody))
			expectCode(t, "a read in "+cluster.String(), said, http.StatusOK)
		}
		for _, begun := range pending {
			select {
			case said := <-begun.answer:
				t.Errorf("the trickle had ended: %d %s", said.Code, said.Message)
			default:
			}
		}
	})
}

func TestABodyThatDoesNotArriveIsRefused(t *testing.T) {
	protocols(t, func(t *testing.T, http2 bool) {
		b := start(t, func(o *apiserver.Options) { o.Limits[budget.BodySeconds] = 1 })
		client := b.patient(t, http2)
		for _, size := range []int{1, 100 << 10} {
			begun := b.trickle(t, client, consumer, http.MethodPost)
			begun.send(t, widgetOf("one", size)[:size])
			expectBound(t, begun.answered(t), http.StatusRequestTimeout, budget.BodySeconds)
		}
		prompt := b.trickle(t, client, consumer, http.MethodPost)
		prompt.send(t, widgetOf("one", 1))
		prompt.body.Close()
		expectCode(t, "a body in time", prompt.answered(t), http.StatusCreated)
	})
}

// TestASlowBodyIsAccepted has bodies take half of the time that they have, and then watches for more than all of it on the
// same connection: no deadline is left behind.
func TestASlowBodyIsAccepted(t *testing.T) {
	const seconds = 2
	protocols(t, func(t *testing.T, http2 bool) {
		b := start(t, func(o *apiserver.Options) { o.Limits[budget.BodySeconds] = seconds })
		client := b.patient(t, http2)
		client.Transport.(*http.Transport).MaxConnsPerHost = 1
		for _, size := range []int{10, 100 << 10} {
			text := widgetOf(fmt.Sprint("slow-", size), size)
			begun := b.trickle(t, client, consumer, http.MethodPost)
			const parts = 10
			for part := range parts {
				begun.send(t, text[part*len(text)/parts:(part+1)*len(text)/parts])
				time.Sleep(seconds * time.Second / parts / 2) // is what the test is about
			}
			begun.body.Close()
			expectCode(t, "a slow body", begun.answered(t), http.StatusCreated)
		}
		watch := b.widgets(t, consumer, http.MethodGet, http.NoBody)
		watch.URL.RawQuery = "watch=true"
		response, err := client.Do(watch)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		events := bufio.NewScanner(response.Body)
		events.Buffer(nil, 1<<20)
		for range 2 { // what is there already
			expectEvent(t, events)
		}
		time.Sleep(seconds * time.Second * 3 / 2) // until any deadline would have passed
		other := b.library(t)
		expectCode(t, "a write", ask(t, other, b.widgets(t, consumer, http.MethodPost, strings.NewReader(widgetOf("later", 1)))), http.StatusCreated)
		expectEvent(t, events)
	})
}

func expectEvent(t *testing.T, events *bufio.Scanner) {
	t.Helper()
	if !events.Scan() || !strings.Contains(events.Text(), `"ADDED"`) {
		t.Fatalf("the watch has %q (%v), want an event", events.Text(), events.Err())
	}
}

func TestLargeBodiesHaveRoom(t *testing.T) {
	const large = 100 << 10
	b := start(t, func(o *apiserver.Options) {
		o.Limits[budget.BodySeconds] = int(patience.Seconds())
		o.Limits[budget.LargeBodies], o.Limits[budget.LargeBodiesPerConsumer] = 2, 1
	})
	client := b.patient(t, true)
	write := func(cluster logicalcluster.Name, name string, size int) metav1.Status {
		return ask(t, client, b.widgets(t, cluster, http.MethodPost, strings.NewReader(widgetOf(name, size))))
	}
	begun := b.trickle(t, client, consumer, http.MethodPost)
	begun.send(t, widgetOf("begun", large)[:large])
	said := metav1.Status{Code: http.StatusCreated}
	for i := 0; said.Code == http.StatusCreated && t.Context().Err() == nil; i++ { // until the other one has the room
		said = write(consumer, fmt.Sprint("large-", i), large)
	}
	expectBound(t, said, http.StatusTooManyRequests, budget.LargeBodiesPerConsumer)
	expectCode(t, "a small one beside it", write(consumer, "small", 1), http.StatusCreated)
	expectCode(t, "a neighbour's", write(otherConsumer, "large", large), http.StatusCreated)

	second := b.trickle(t, client, otherConsumer, http.MethodPost)
	second.send(t, widgetOf("begun", large)[:large])
	begun.send(t, widgetOf("begun", large)[large:])
	begun.body.Close()
	expectCode(t, "what has arrived after all", begun.answered(t), http.StatusCreated)
	expectCode(t, "the next", write(consumer, "next", large), http.StatusCreated)
}

func TestBodiesThatArriveAreCounted(t *testing.T) {
	b := start(t, func(o *apiserver.Options) {
		o.Limits[budget.BodySeconds] = int(patience.Seconds())
		o.Limits[budget.BodiesPerConsumer] = 1
	})
	client := b.patient(t, true)
	b.trickle(t, client, consumer, http.MethodPost)
	said := ask(t, client, b.widgets(t, consumer, http.MethodPost, strings.NewReader(widgetOf("one", 1))))
	expectBound(t, said, http.StatusTooManyRequests, budget.BodiesPerConsumer)
	said = ask(t, client, b.widgets(t, otherConsumer, http.MethodPost, strings.NewReader(widgetOf("one", 1))))
	expectCode(t, "a neighbour's", said, http.StatusCreated)
}

// TestNobodyTakesTheRoomOfAWorkspaceThatTheyOnlyName trickles as a user, whose rights are known later.
func TestNobodyTakesTheRoomOfAWorkspaceThatTheyOnlyName(t *testing.T) {
	b := start(t, func(o *apiserver.Options) {
		o.Limits[budget.BodySeconds] = int(patience.Seconds())
		o.Limits[budget.BodiesPerConsumer] = 1
	})
	connection, err := b.dial(b.client(t, pki.Client, "mallory"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
		base+consumer.String()+apis+"/namespaces/default/widgets")
	if line, err := bufio.NewReader(connection).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q (%v), want to be asked for the body", line, err)
	}
	said := ask(t, b.library(t), b.widgets(t, consumer, http.MethodPost, strings.NewReader(widgetOf("one", 1))))
	expectCode(t, "the workspace's own", said, http.StatusCreated)
}

// TestAConnectionWithABodyThatDoesNotArriveEnds would wait for ever if the server read on after its answer.
func TestAConnectionWithABodyThatDoesNotArriveEnds(t *testing.T) {
	b := start(t, func(o *apiserver.Options) { o.Limits[budget.BodySeconds] = 1 })
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		for _, length := range []string{"Content-Length: 100", "Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			connection, err := b.dial(b.client(t, pki.Client, shard))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			_ = connection.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n1\r\n{\r\n",
				method, base+consumer.String()+apis+"/namespaces/default/widgets", length)
			said, err := io.ReadAll(connection)
			if err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 408 ") || !strings.Contains(string(said), budget.BodySeconds.Name) {
				t.Errorf("%s, %s: got %q (%v)", method, length, said, err)
			}
		}
	}
}

func TestABodyWithoutEndIsRefused(t *testing.T) {
	protocols(t, func(t *testing.T, http2 bool) {
		b := start(t)
		endless := io.MultiReader(strings.NewReader(widgetOf("one", 4<<20))) // nobody knows its size
		expectBound(t, ask(t, b.patient(t, http2), b.widgets(t, consumer, http.MethodPost, endless)), http.StatusRequestEntityTooLarge, budget.RequestBytes)
	})
}
