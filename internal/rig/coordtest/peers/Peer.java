import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport.EventType;

/** One participant of an election, a lock, a queue or a group, as other people's programs have it; see zookeeper_peer.go. */
public class Peer {
    interface Recipe {
        void join() throws Exception;

        void leave() throws Exception;

        default void put(int n) throws Exception {
            throw new UnsupportedOperationException();
        }
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0], address = args[1], path = args[2], id = args[3];
        int session = Integer.parseInt(args[4]);
        Recipe recipe;
        if (kind.equals("election-support")) {
            recipe = electionSupport(zookeeper(address, session), path, id);
        } else {
            recipe = curator(kind, () -> connect(address, session, id), path, id);
        }
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            try {
                if (line.equals("join")) {
                    recipe.join();
                } else if (line.equals("leave")) {
                    say("leaving");
                    recipe.leave();
                    say("left");
                } else if (line.startsWith("put ")) {
                    recipe.put(Integer.parseInt(line.substring(4)));
                    say("put");
                } else {
                    say("failed: unknown command " + line);
                }
            } catch (Exception e) {
                say("failed: " + e);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static void say(String what) {
        say(Instant.now(), what);
    }

    static synchronized void say(Instant at, String what) {
        System.out.println(ChronoUnit.MICROS.between(Instant.EPOCH, at) + " " + what);
        System.out.flush();
    }

    /**
     * The work of one term, from when it is made: each act asks the library whether this
     * participant leads, and the first no ends it. It is then lost as of its last act, which is
     * dated before the asking. Whoever hears that it began may tell the participant to leave at
     * once: begin it where quit finds it.
     */
    static final class Work {
        static final long PAUSE_MILLIS = 1; // between two acts

        private final BooleanSupplier leads;
        private Instant acted = Instant.now();
        private boolean over;

        Work(BooleanSupplier leads) {
            this.leads = leads;
        }

        synchronized void begin() {
            if (!over) {
                say(acted, "elected");
            }
        }

        /** Acts once, and says whether there is more to do. */
        synchronized boolean act() {
            Instant asked = Instant.now();
            if (!over && leads.getAsBoolean()) {
                acted = asked;
            } else {
                lose();
            }
            return !over;
        }

        /** Ends the work because the library says so. */
        synchronized void lose() {
            if (!over) {
                say(acted, "lost");
            }
            over = true;
        }

        /** Ends the work because this participant leaves. */
        synchronized void quit() {
            over = true;
        }

        void start() {
            begin();
            Thread thread = new Thread(() -> {
                while (act()) {
                    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS));
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    static ZooKeeper zookeeper(String address, int session) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(address, session, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        return client;
    }

    static CuratorFramework connect(String address, int session, String id) {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(address)
                .sessionTimeoutMs(session)
                .connectionTimeoutMs(session)
                .retryPolicy(new ExponentialBackoffRetry(50, 10))
                .defaultData(id.getBytes(StandardCharsets.UTF_8)) // which members of locks have
                .build();
        client.start();
        try {
            client.blockUntilConnected();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return client;
    }

    static Recipe curator(String kind, Supplier<CuratorFramework> clients, String path, String id) {
        if (kind.equals("curator-group")) {
            return group(clients, path);
        }
        CuratorFramework client = clients.get();
        switch (kind) {
            case "curator-queue":
                return queue(client, path);
            case "curator-latch":
                return latch(client, path, id);
            case "curator-selector":
                return selector(client, path, id);
            case "curator-mutex":
                return lock(() -> new InterProcessMutex(client, path));
            case "curator-write":
                return lock(() -> new InterProcessReadWriteLock(client, path).writeLock());
            case "curator-read":
                return lock(() -> new InterProcessReadWriteLock(client, path).readLock());
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    /** Each join stands once more, with a latch of its own; whoever leads is the first to leave. */
    static Recipe latch(CuratorFramework client, String path, String id) {
        Map<LeaderLatch, AtomicReference<Work>> line = new LinkedHashMap<>();
        return new Recipe() {
            @Override
            public void join() throws Exception {
                LeaderLatch latch = new LeaderLatch(client, path, id);
                AtomicReference<Work> term = new AtomicReference<>();
                latch.addListener(new LeaderLatchListener() {
                    @Override
                    public void isLeader() {
                        Work work = new Work(latch::hasLeadership);
                        term.set(work);
                        work.start();
                    }

                    @Override
                    public void notLeader() { // so that no term runs into the next
                        Work work = term.get();
                        if (work != null) {
                            work.lose();
                        }
                    }
                });
                line.put(latch, term);
                latch.start();
            }

            @Override
            public void leave() throws Exception {
                LeaderLatch latch = line.keySet().stream().filter(LeaderLatch::hasLeadership).findFirst()
                        .orElseGet(() -> line.keySet().iterator().next());
                Work work = line.remove(latch).get();
                if (work != null) {
                    work.quit();
                }
                latch.close();
            }
        };
    }

    static Recipe selector(CuratorFramework client, String path, String id) {
        CountDownLatch enough = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework c) throws Exception {
                if (enough.getCount() == 0) {
                    return; // told to leave, and queued again
                }
                Work work = new Work(() -> !Thread.currentThread().isInterrupted());
                work.begin();
                try {
                    do {
                        work.act();
                    } while (!enough.await(Work.PAUSE_MILLIS, TimeUnit.MILLISECONDS));
                } catch (InterruptedException e) {
                    work.lose();
                    throw e;
                } finally {
                    over.countDown();
                }
            }
        });
        selector.setId(id);
        selector.autoRequeue();
        return new Recipe() {
            @Override
            public void join() {
                selector.start();
            }

            @Override
            public void leave() throws Exception {
                enough.countDown();
                if (selector.hasLeadership()) {
                    over.await();
                }
                selector.close();
            }
        };
    }

    /** Each join asks for the lock once more, in a thread of its own; whoever holds it is the first to leave. */
    static Recipe lock(Supplier<InterProcessLock> locks) {
        Map<Thread, InterProcessLock> line = new LinkedHashMap<>();
        return new Recipe() {
            @Override
            public void join() {
                InterProcessLock lock = locks.get();
                Thread thread = new Thread(() -> hold(lock));
                thread.setDaemon(true);
                line.put(thread, lock);
                thread.start();
            }

            @Override
            public void leave() throws Exception {
                Thread thread = line.entrySet().stream().filter(e -> e.getValue().isAcquiredInThisProcess()).findFirst()
                        .orElseGet(() -> line.entrySet().iterator().next()).getKey();
                line.remove(thread);
                thread.interrupt();
                thread.join();
            }
        };
    }

    /** Holds the lock, once it has it, until the thread is interrupted. */
    static void hold(InterProcessLock lock) {
        try {
            lock.acquire();
            Work work = new Work(lock::isAcquiredInThisProcess);
            work.begin();
            while (!Thread.interrupted() && work.act()) {
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(Work.PAUSE_MILLIS));
            }
            work.quit();
            lock.release();
        } catch (InterruptedException e) {
            // It has left the line while it waited.
        } catch (Exception e) {
            say("failed: " + e);
        }
    }

    static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };

    /** Each join wants one item more, whose holder leads; leaving confirms it. */
    static Recipe queue(CuratorFramework client, String path) {
        Semaphore wanted = new Semaphore(0), done = new Semaphore(0);
        QueueConsumer<String> consumer = new QueueConsumer<String>() {
            @Override
            public void consumeMessage(String item) throws Exception {
                wanted.acquire();
                say("elected");
                done.acquire();
            }

            @Override
            public void stateChanged(CuratorFramework c, ConnectionState state) {
                if (!state.isConnected()) {
                    say("failed: " + state);
                }
            }
        };
        // With locks an item outlives the consumer that had it.
        DistributedQueue<String> queue = QueueBuilder.builder(client, consumer, TEXT, path).lockPath(path + "-locks").buildQueue();
        return new Recipe() {
            private boolean started;

            @Override
            public void join() throws Exception {
                if (!started) {
                    queue.start();
                }
                started = true;
                wanted.release();
            }

            @Override
            public void leave() {
                done.release();
            }

            @Override
            public void put(int n) throws Exception {
                try (DistributedQueue<String> producer = QueueBuilder.builder(client, null, TEXT, path).buildQueue()) {
                    producer.start();
                    for (int i = 0; i < n; i++) {
                        producer.put("x");
                    }
                    if (!producer.flushPuts(1, TimeUnit.MINUTES)) {
                        throw new IllegalStateException("not all items were put within a minute");
                    }
                }
            }
        };
    }

    /**
     * Members of a group, each with a client of its own. To put n has so many join at once. A join has one more, and the
     * group leads when all members know it; to leave undoes the last join, and ends when all know that.
     */
    static Recipe group(Supplier<CuratorFramework> clients, String path) {
        List<GroupMember> members = new ArrayList<>();
        List<CuratorFramework> connected = new ArrayList<>();
        byte[] value = "10.0.0.1:8080 read,write".getBytes(StandardCharsets.UTF_8);
        return new Recipe() {
            private CuratorFramework next; // the client of who joins next

            private void add() {
                CuratorFramework client = next == null ? clients.get() : next;
                next = null;
                GroupMember member = new GroupMember(client, path, "member-" + members.size(), value);
                member.start();
                connected.add(client);
                members.add(member);
            }

            private void allKnow() {
                for (GroupMember member : members) {
                    while (member.getCurrentMembers().size() != members.size()) {
                        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(Work.PAUSE_MILLIS));
                    }
                }
            }

            @Override
            public void put(int n) {
                for (int i = 0; i < n; i++) {
                    add();
                }
                allKnow();
                next = clients.get();
            }

            @Override
            public void join() {
                add();
                allKnow();
                say("elected");
            }

            @Override
            public void leave() {
                int last = members.size() - 1;
                members.remove(last).close();
                connected.remove(last).close();
                allKnow();
                next = clients.get();
            }
        };
    }

    static Recipe electionSupport(ZooKeeper client, String path, String id) {
        LeaderElectionSupport support = new LeaderElectionSupport();
        support.setZooKeeper(client);
        support.setRootNodeName(path);
        support.setHostName(id);
        support.addListener(event -> {
            if (event == EventType.ELECTED_COMPLETE) {
                say("elected");
            } else if (event == EventType.FAILED) {
                say("failed: LeaderElectionSupport");
            }
        });
        return new Recipe() {
            @Override
            public void join() {
                support.start();
            }

            @Override
            public void leave() {
                support.stop();
            }
        };
    }
}
