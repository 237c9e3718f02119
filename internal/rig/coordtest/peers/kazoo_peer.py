"""One participant of an election or a lock, as other people's programs have it; see zookeeper_peer.go."""

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
told = threading.Event()  # to leave
stop = threading.Event()  # whoever leads is to stop
leads = threading.Event()


# An Election tells its leader of nothing: kazoo's manual says to listen to the connection.
def heed(state):
    if state != KazooState.CONNECTED:
        stop.set()
    elif not told.is_set():
        stop.clear()


client.add_listener(heed)
client.start()
recipe = {
    "kazoo": client.Election,
    "kazoo-lock": client.Lock,
    "kazoo-write": client.WriteLock,
    "kazoo-read": client.ReadLock,
}[kind](path, identifier)


# What is lost is lost as of the last act, which is dated before the asking.
def lead():
    acted = time.time_ns()
    leads.set()
    say("elected", acted)
    over = False
    while not over:
        asked = time.time_ns()
        if not stop.is_set():
            acted = asked
        over = stop.wait(0.001)
    leads.clear()
    if not told.is_set():
        say("lost", acted)


def campaign():
    while not told.is_set():
        try:
            if kind == "kazoo":
                recipe.run(lead)
            else:
                with recipe:
                    lead()
        except KazooException as e:
            logging.warning("not elected, trying again: %r", e)
            time.sleep(0.5)
        except Exception as e:
            say("failed: %r" % e)
            return


candidate = threading.Thread(target=campaign, daemon=True)
say("ready")
for line in sys.stdin:
    if line == "join\n":
        candidate.start()
    elif line == "leave\n":
        say("leaving")
        told.set()
        stop.set()
        if not leads.is_set():
            recipe.cancel()
        candidate.join()
        say("left")
    else:
        say("failed: unknown command " + line)
