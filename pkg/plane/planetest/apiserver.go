package planetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	// startTimeout is far above the 5 to 15 seconds that a start takes on an idle machine.
	startTimeout = 2 * time.Minute
	startPoll    = 100 * time.Millisecond
	binaryName   = "kube-apiserver"
	adminToken   = "admin-token"
	kropToken    = "krop-token"
)

// Server is a running kube-apiserver.
type Server struct {
	// Admin may do everything.
	Admin *rest.Config
	// Krop is the user "krop", who may do what a test grants.
	Krop *rest.Config

	etcd    *embed.Etcd
	process *exec.Cmd
	exited  chan struct{}
	dir     string
}

// Start starts etcd and kube-apiserver. Call Stop when done with them, also from TestMain.
func Start(ctx context.Context) (server *Server, err error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "planetest-")
	if err != nil {
		return nil, err
	}
	server = &Server{dir: dir, exited: make(chan struct{})}
	defer func() {
		if err != nil {
			server.Stop()
		}
	}()
	if server.etcd, err = startEtcd(dir); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if err = server.run(binary); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	return server, server.awaitReady(ctx)
}

// Stop ends both and removes their data.
func (s *Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		<-s.exited
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
	_ = os.RemoveAll(s.dir)
}

// findBinary looks where make puts it, seen from any package of the module.
func findBinary() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if binary := filepath.Join(dir, "bin", binaryName); isFile(binary) {
			return binary, nil
		}
	}
	if binary, err := exec.LookPath(binaryName); err == nil {
		return binary, nil
	}
	return "", errors.New("no bin/kube-apiserver: make builds it")
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func (s *Server) run(binary string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	args, err := s.args(address)
	if err != nil {
		return err
	}
	log, err := os.Create(s.log())
	if err != nil {
		return err
	}
	s.process = exec.Command(binary, args...)
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = dieWithParent()
	started := make(chan error)
	go s.wait(log, started)
	if err := <-started; err != nil {
		s.process = nil
		return err
	}
	s.Admin, s.Krop = user(address, adminToken), user(address, kropToken)
	return nil
}

// wait starts the process and waits for its end, on one thread: for Linux, that is the child's parent.
func (s *Server) wait(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer log.Close()
	err := s.process.Start()
	started <- err
	if err == nil {
		_ = s.process.Wait()
		close(s.exited)
	}
}

func (s *Server) log() string { return filepath.Join(s.dir, "kube-apiserver.log") }

func (s *Server) args(address string) ([]string, error) {
	tokens := filepath.Join(s.dir, "tokens.csv")
	content := fmt.Sprintf("%s,admin,admin,system:masters\n%s,krop,krop\n", adminToken, kropToken)
	if err := os.WriteFile(tokens, []byte(content), 0o600); err != nil {
		return nil, err
	}
	key, err := writeKey(filepath.Join(s.dir, "service-account.key"))
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=" + s.etcd.Config().AdvertiseClientUrls[0].String(),
		"--bind-address=" + host, "--secure-port=" + port, "--cert-dir=" + filepath.Join(s.dir, "certs"),
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://localhost", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--disable-admission-plugins=ServiceAccount", "--enable-priority-and-fairness=false",
	}, nil
}

func user(address, token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + address, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // the certificate is made at start
	}
}

func (s *Server) awaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.Admin)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, startPoll, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.exited:
			return false, errors.New("kube-apiserver has exited")
		default:
			return isReady(ctx, client, s.Admin.Host)
		}
	})
	if err != nil {
		log, _ := os.ReadFile(s.log())
		return fmt.Errorf("%w: %s", err, tail(log))
	}
	return nil
}

func isReady(ctx context.Context, client *http.Client, host string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", nil)
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return false, nil // not listening yet
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

// tail is the end of a log, enough to see why a process gave up.
func tail(log []byte) []byte {
	const enough = 2000
	return log[max(0, len(log)-enough):]
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)), nil
}

// writeKey makes a key for service account tokens, which the server wants although no test uses it.
func writeKey(name string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
