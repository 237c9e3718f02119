"""One participant of an election, a lock or a queue, as other people's programs have it; see zookeeper_peer.go."""

import logging
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException

logging.basicConfig(level=logging.WARNING)
lock = threading.Lock()


def say(what, at=None):
    with lock:
        sys.stdout.write("%d %s\n" % ((at or time.time_ns()) // 1000, what))
        sys.stdout.flush()


kind, address, path, identifier, session = sys.argv[1:6]
client = KazooClient(hosts=address, timeout=int(session) / 1000)


# Each join makes a candidate, with a recipe of its own.
class Candidate(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.told = threading.Event()  # to leave
        self.stop = threading.Event()  # if it leads it is to stop
        self.leads = threading.Event()
        self.recipe = {
            "kazoo": client.Election,
            "kazoo-lock": client.Lock,
            "kazoo-write": client.WriteLock,
            "kazoo-read": client.ReadLock,
        }[kind](path, identifier)

    # What is lost is lost as of the last act, which is dated before the asking.
    def lead(self):
        acted = time.time_ns()
        self.leads.set()
        say("elected", acted)
        over = False
        while not over:
            asked = time.time_ns()
            if not self.stop.is_set():
                acted = asked
            over = self.stop.wait(0.001)
        self.leads.clear()
        if not self.told.is_set():
            say("lost", acted)

    def run(self):
        while not self.told.is_set():
            try:
                if kind == "kazoo":
                    self.recipe.run(self.lead)
                else:
                    with self.recipe:
                        self.lead()
            except KazooException as e:
                logging.warning("not elected, trying again: %r", e)
                time.sleep(0.5)
            except Exception as e:
                say("failed: %r" % e)
                return

    def leave(self):
        self.told.set()
        self.stop.set()
        if not self.leads.is_set():
            self.recipe.cancel()
        self.join()


line = []


# An Election tells its leader of nothing: kazoo's manual says to listen to the connection.
def heed(state):
    for c in list(line):
        if state != KazooState.CONNECTED:
            c.stop.set()
        elif not c.told.is_set():
            c.stop.clear()


client.add_listener(heed)
client.start()
say("ready")

# Each join wants one item more, whose holder leads; leaving confirms it.
if kind == "kazoo-queue":
    queue = client.LockingQueue(path)
    for command in sys.stdin:
        if command == "join\n":
            queue.get()
            say("elected")
        elif command == "leave\n":
            if not queue.consume():
                say("failed: the item could not be confirmed")
            say("left")
        elif command.startswith("put "):
            queue.put_all([b"x"] * int(command[4:]))
            say("put")
        else:
            say("failed: unknown command " + command)
    sys.exit()

for command in sys.stdin:
    if command == "join\n":
        c = Candidate()
        line.append(c)
        if client.state != KazooState.CONNECTED:
            c.stop.set()
        c.start()
    elif command == "leave\n":
        say("leaving")
        c = next((c for c in line if c.leads.is_set()), line[0])
        c.leave()
        line.remove(c)
        say("left")
    else:
        say("failed: unknown command " + command)
