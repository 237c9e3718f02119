"""One participant of an election, as other people's programs have it; see zookeeper_peer.go."""

import logging
import sys
import threading
import time

from kazoo.client import KazooClient

logging.basicConfig(level=logging.WARNING)
lock = threading.Lock()


def say(what):
    with lock:
        sys.stdout.write("%d %s\n" % (time.time_ns() // 1000, what))
        sys.stdout.flush()


address, path, identifier, session = sys.argv[1:5]
client = KazooClient(hosts=address, timeout=int(session) / 1000)
client.start()
election = client.Election(path, identifier)
enough = threading.Event()
leads = threading.Event()


def lead():
    leads.set()
    say("elected")
    enough.wait()


def campaign():
    try:
        election.run(lead)
    except Exception as e:
        say("failed: %r" % e)


candidate = threading.Thread(target=campaign, daemon=True)
say("ready")
for line in sys.stdin:
    if line == "join\n":
        candidate.start()
    elif line == "leave\n":
        say("leaving")
        enough.set()
        if not leads.is_set():
            election.cancel()
        candidate.join()
        say("left")
    else:
        say("failed: unknown command " + line)
