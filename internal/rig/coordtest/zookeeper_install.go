package coordtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ZooKeeperJarEnv names the environment variable that says where ZooKeeper is: the
// path of zookeeper.jar, or a Java class path that holds it, such as
// /opt/apache-zookeeper-3.9.3-bin/lib/*.
const ZooKeeperJarEnv = "SUCCESSION_ZOOKEEPER_JAR"

const (
	// debianJar is where the package libzookeeper-java of Debian and Ubuntu puts
	// it. Its manifest names the libraries that it needs.
	debianJar = "/usr/share/java/zookeeper.jar"
	// debianLogger writes the server's log to standard error.
	debianLogger = "/usr/share/java/slf4j-simple.jar"
)

// A zookeeperInstall is what it takes to run ZooKeeper on this machine.
type zookeeperInstall struct {
	java      string
	classPath string
}

// findZooKeeper looks for java and ZooKeeper. Its error says how to get them.
func findZooKeeper() (*zookeeperInstall, error) {
	const how = "run ./test servers, which installs what the tests need " +
		"(on Debian and Ubuntu: apt-get install libzookeeper-java default-jre-headless)"

	java, err := findJava()
	if err != nil {
		return nil, fmt.Errorf("tests need a real ZooKeeper, and java is missing: %w; %s", err, how)
	}
	classPath := os.Getenv(ZooKeeperJarEnv)
	if classPath == "" {
		if _, err := os.Stat(debianJar); err != nil {
			return nil, fmt.Errorf("tests need a real ZooKeeper: %w; %s, or set %s to the path of zookeeper.jar", err, how, ZooKeeperJarEnv)
		}
		return &zookeeperInstall{java, debianJar + string(os.PathListSeparator) + debianLogger}, nil
	}
	for _, entry := range filepath.SplitList(classPath) {
		// Java expands a class path entry that ends in an asterisk to all jars of the folder.
		if _, err := os.Stat(strings.TrimSuffix(entry, "*")); err != nil {
			return nil, fmt.Errorf("tests need a real ZooKeeper, and %s is wrong: %w", ZooKeeperJarEnv, err)
		}
	}
	return &zookeeperInstall{java, classPath}, nil
}

// findJava prefers JAVA_HOME, as ZooKeeper's own scripts do.
func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	return exec.LookPath("java")
}

// command returns the command line of a server with the given zoo.cfg.
func (z *zookeeperInstall) command(cfg string, opts *ZooKeeperOptions) []string {
	argv := []string{
		z.java,
		// A small server that starts quickly matters more here than a fast one.
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-XX:-UsePerfData",
		"-Dzookeeper.jmx.log4j.disable=true",
		// A server that looks for a leader asks the others again, each time after twice as
		// long, up to a minute (FastLeaderElection.java): those that were away for some
		// seconds would be found as late as that.
		"-Dzookeeper.fastleader.maxNotificationInterval=800",
		"-Dzookeeper.preAllocSize=256",                                                // KiB of log file to allocate at a time, 64 MiB by default
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn", // every four-letter command
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	}
	if !opts.Disk {
		argv = append(argv, "-Dzookeeper.forceSync=no")
	}
	if opts.archive != "" {
		argv = append(argv, "-XX:SharedArchiveFile="+opts.archive)
	}
	argv = append(argv, opts.JVM...)
	return append(argv, "-cp", z.classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg)
}
