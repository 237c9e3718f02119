package coordtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// classArchive returns where java finds the classes of ZooKeeper as a server that ran
// before has read and checked them (https://openjdk.org/jeps/350), which is a quarter of
// what the start of a server costs. It is empty where there is none: java makes one since
// its version 13.
var classArchive = sync.OnceValue(func() string {
	install, err := findZooKeeper()
	if err != nil {
		return ""
	}
	java, err := filepath.EvalSymlinks(install.java) // a new version is another file
	if err != nil {
		return ""
	}
	key, err := filesKey(append(filepath.SplitList(install.classPath), java)...)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), zookeeperStart)
	defer cancel()
	path, err := cached(ctx, key, "zookeeper.jsa", func(part string) error { return install.archive(ctx, part) })
	if err != nil {
		progress("zookeeper: it starts more slowly without an archive of its classes: %v", err)
		return ""
	}
	return path
})

// archive runs a server until it serves, and has it archive its classes as it ends. A
// server of several knows more classes than one alone.
func (z *zookeeperInstall) archive(ctx context.Context, file string) error {
	servers, err := startCoordinator(ctx, "ZooKeeper", zookeeperStart, func() *ZooKeeper {
		o := (&ZooKeeperOptions{Nodes: 3, JVM: []string{"-XX:+IgnoreUnrecognizedVMOptions", "-XX:ArchiveClassesAtExit=" + file}}).withDefaults()
		return &ZooKeeper{opts: o, install: z}
	})
	if err != nil {
		return err
	}
	defer servers.Stop()
	one := servers.servers[0].process()
	if err := one.os.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err = os.Stat(file)
	return err
}
