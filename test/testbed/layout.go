package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// layout is where things are in the folder of a test bed.
type layout string

// kubeconfig of a user, for people to find.
func (l layout) kubeconfig(user User) string {
	return filepath.Join(string(l), string(user)+".kubeconfig")
}

// logs of all servers.
func (l layout) logs() string {
	return filepath.Join(string(l), "logs")
}

// log of a server.
func (l layout) log(server string) string {
	return filepath.Join(l.logs(), server+".log")
}

// privateLog makes the log of a server that would itself make one for all to read.
func (l layout) privateLog(server string) error {
	const owner = 0o600
	file, err := os.OpenFile(l.log(server), os.O_CREATE|os.O_WRONLY, owner)
	if err != nil {
		return fmt.Errorf("make the log of %s: %w", server, err)
	}
	return errors.Join(file.Chmod(owner), file.Close())
}

// data of a server.
func (l layout) data(server string) string {
	return filepath.Join(string(l), "data", server)
}

// file that a server is configured by.
func (l layout) config(name string) string {
	return filepath.Join(string(l), "data", "config", name)
}

// prepare makes the folders. They are for their owner alone, since keys are in them.
func (l layout) prepare() error {
	for _, dir := range []string{string(l), l.logs(), l.config("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("prepare the test bed's folder: %w", err)
		}
	}
	return nil
}

// lockFile tells the folder of a test bed from others.
func (l layout) lockFile() string {
	return filepath.Join(string(l), "lock")
}

// unused says whether no test bed was ever started in the folder.
func (l layout) unused() bool {
	_, err := os.Stat(l.lockFile())
	return errors.Is(err, fs.ErrNotExist)
}

// InUseError says that a test bed runs in a folder.
type InUseError struct{ Dir string }

// Error names the folder.
func (e *InUseError) Error() string { return "another test bed runs in " + e.Dir }

// lock keeps a second test bed out of the folder until the file is closed, which the end of the process does
// in any case. It fails with an InUseError if one runs there.
func (l layout) lock() (*os.File, error) {
	file, err := os.OpenFile(l.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the test bed's folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &InUseError{Dir: string(l)}
	}
	return nil, fmt.Errorf("lock the test bed's folder: %w", err)
}

// RemoveData forgets what test beds left in a folder, and leaves what isn't theirs. It fails with an InUseError
// if one runs there.
func RemoveData(dir string) error {
	l := layout(dir)
	if l.unused() {
		return nil
	}
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	return l.clear()
}

// clear removes what is a test bed's. The folder is locked.
func (l layout) clear() error {
	ours, err := filepath.Glob(l.kubeconfig("*"))
	if err != nil {
		return fmt.Errorf("find kubeconfigs: %w", err)
	}
	ours = append(ours, l.logs(), l.data(""), l.lockFile())
	for _, path := range ours {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove data: %w", err)
		}
	}
	_ = os.Remove(string(l)) // stays if something else is in it
	return nil
}
