-- The schema {schema} of package postgres, format {format}. The package comment says how it works, and why.
--
-- Processes of different versions use it at the same time. So a function keeps its arguments and what it returns, and what
-- needs others is a function with another name. Where something is added or changed, the format is the next number. Applied to a schema
-- of an older format, this makes it one of this format, while processes go on. If those before a certain format could not, they
-- must be stopped before: that format is the oldest.
--
-- The name of the schema stands for the at sign in quotes, as it may be a word of SQL.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- whatever the default is: what follows must see what others did while it waited
DO $$
DECLARE m record;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('succession schema @')); -- others may be making it
  IF to_regnamespace('@') IS NULL THEN
    CREATE SCHEMA @; -- with IF NOT EXISTS it would need the right to make one also where there is one
  END IF;
  IF to_regclass('@.meta') IS NULL THEN
    IF EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = to_regnamespace('@')) OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = to_regnamespace('@')) THEN
      RAISE EXCEPTION 'succession: the schema {schema} has tables or functions that are no whole schema of this package: give the elections a schema of their own, or drop this one if nothing else uses it' USING ERRCODE = 'SU004';
    END IF;
    RETURN;
  END IF;
  SELECT * INTO m FROM @.meta FOR UPDATE; -- nobody opens a session meanwhile
  IF m.format > {format} THEN
    RAISE EXCEPTION 'succession: the schema {schema} has format % already, which is newer than {format}', m.format;
  ELSIF m.oldest < {oldest} AND EXISTS (SELECT FROM @.session) THEN
    RAISE EXCEPTION 'succession: format {format} is for processes of format {oldest} and later, and the schema {schema} has sessions: stop all processes, and delete what is then left in the table session';
  END IF;
END $$;

CREATE TABLE IF NOT EXISTS @.meta (
  one bool PRIMARY KEY DEFAULT true CHECK (one),
  format int NOT NULL,
  oldest int NOT NULL,  -- the format of the oldest processes that may have sessions
  id uuid NOT NULL,     -- of this schema: another one has forgotten what this one knew
  era text NOT NULL,    -- the newest in which somebody may be first
  longest int NOT NULL  -- no session that may live has a longer session time, in ms
);

-- Each counts positions and versions, for the lines and records whose names fall to it. It stays locked until commit: so
-- the numbers of one line grow in the order of commits.
CREATE TABLE IF NOT EXISTS @.stripe (n int PRIMARY KEY, last bigint NOT NULL) WITH (fillfactor = 10);

-- beat is the number that heartbeats raise, and at is when one did last. No index has them, so that raising them changes no index (HOT).
-- opened, which is added below, grows from session to session.
-- Only its owner, the role that has logged in, can use a session: its id is no secret.
CREATE TABLE IF NOT EXISTS @.session (id uuid PRIMARY KEY, ttl int NOT NULL, era text NOT NULL, beat bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(), owner name NOT NULL DEFAULT session_user)
  WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Joins of a session with a number up to burnt never take effect any more.
CREATE TABLE IF NOT EXISTS @.joiner (session uuid PRIMARY KEY REFERENCES @.session ON DELETE CASCADE, burnt bigint NOT NULL DEFAULT 0);

-- A member without a session is pinned. number is that of its join, or 0 of an item; one that has none was written by hand. subject is that of
-- a claim.
CREATE TABLE IF NOT EXISTS @.member (
  line text COLLATE "C" NOT NULL, pos bigint NOT NULL, session uuid REFERENCES @.session ON DELETE CASCADE, number bigint,
  value bytea NOT NULL, shared bool NOT NULL, subject text COLLATE "C",
  PRIMARY KEY (line, pos), UNIQUE (session, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE IF NOT EXISTS @.record (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, version bigint NOT NULL);

-- What transactions of users wait to be checked for at their commit. A crash may lose it: it has then ended these transactions.
CREATE UNLOGGED TABLE IF NOT EXISTS @.guarded (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, election text NOT NULL, pos bigint NOT NULL)
  WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The functions that every request calls are in PL/pgSQL, which plans them once for each connection: SQL does it each time.
CREATE OR REPLACE FUNCTION @.start() RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (extract(epoch FROM pg_postmaster_start_time()) * 1e6)::bigint; END $$;

-- An era ends when another server takes over: its timeline is another one. Where services do not let the owner of the schema ask for that, the era
-- also ends when the server starts anew, as no two servers have started in the same microsecond.
DO $$ BEGIN
  PERFORM pg_walfile_name(pg_current_wal_lsn()), system_identifier FROM pg_control_system();
  -- It reads a file, and says the same for as long as a connection lives: so each connection asks once, when era is planned.
  CREATE OR REPLACE FUNCTION @.system() RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN (pg_control_system()).system_identifier; END';
  CREATE OR REPLACE FUNCTION @.era() RETURNS text LANGUAGE plpgsql STABLE AS
  'BEGIN RETURN @.system() || ''/'' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8); END';
EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
  CREATE OR REPLACE FUNCTION @.era() RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN ''start/'' || @.start(); END';
END $$;

-- A life also ends when the server starts anew.
CREATE OR REPLACE FUNCTION @.life() RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN @.era() || '/' || @.start(); END $$;

-- What is told as done must have been synced, also if the user, the role or the database has set something else.
CREATE OR REPLACE FUNCTION @.synced() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- Whoever writes calls this first. What users, roles and databases may have set otherwise: who waits for a lock must not take
-- effect long after its client has given up, and the client must hear of a commit that a standby does not have.
CREATE OR REPLACE FUNCTION @.writes() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'succession: the transaction is not READ COMMITTED' USING ERRCODE = 'SU002';
  END IF;
  IF current_setting('session_replication_role') = 'replica' THEN
    RAISE EXCEPTION 'succession: session_replication_role is replica, so that no trigger works' USING ERRCODE = 'SU003';
  END IF;
  PERFORM @.synced();
  IF current_setting('client_min_messages') = 'error' THEN
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;
  PERFORM set_config('lock_timeout', '5s', true);
END $$;

-- What stands for a name where that would be too long, or one of too many: in the names of channels, which Go makes as well, and for stripes. SHA-256
-- is there on each server: where FIPS 140 counts, MD5 is refused.
CREATE OR REPLACE FUNCTION @.digest(name text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 32); END $$;

-- The next number for a name. It is larger than all that its stripe has given, also if a failover has lost some, as long as
-- the clock of the new server is not behind that of the old one by more than the failover took. JSON can have it: it
-- stays below 2^53.
CREATE OR REPLACE FUNCTION @.next(name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE given bigint;
BEGIN
  UPDATE @.stripe t SET last = greatest(t.last + 1, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint)
    WHERE t.n = ('x' || left(@.digest(name), 2))::bit(8)::int & 63 RETURNING t.last INTO given;
  RETURN given;
END $$;

-- Whether the session lives. It does not end before this transaction. What follows waits for a lock for no more than a session time: by then
-- its client has given up, and perhaps asked again, and each of these requests would occupy a process of the server.
CREATE OR REPLACE FUNCTION @.lives(s uuid) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE t int;
BEGIN
  PERFORM @.writes();
  SELECT x.ttl INTO t FROM @.session x WHERE x.id = s AND x.era = @.era() AND x.owner = session_user FOR KEY SHARE;
  IF t < 5000 THEN PERFORM set_config('lock_timeout', t || 'ms', true); END IF;
  RETURN t IS NOT NULL;
END $$;

-- Whether the member stands. It does not go before this transaction ends.
CREATE OR REPLACE FUNCTION @.holds(l text, p bigint) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM @.member m WHERE m.line = l AND m.pos = p
    AND (m.session IS NULL OR EXISTS (SELECT FROM @.session x WHERE x.id = m.session AND x.era = @.era())) FOR KEY SHARE OF m;
  RETURN FOUND;
END $$;

-- Who listens is told what has changed, and looks at the rows. Who changes a table by hand needs no right on what this calls.
CREATE OR REPLACE FUNCTION @.tell() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_TABLE_NAME = 'record' THEN
    PERFORM pg_notify('{schema}.r' || @.digest(coalesce(NEW.name, OLD.name)), '');
  ELSIF TG_TABLE_NAME = 'session' THEN
    PERFORM pg_notify('{schema}.s' || OLD.id, '');
  ELSE
    IF TG_OP <> 'INSERT' THEN PERFORM pg_notify('{schema}.m' || OLD.pos, ''); END IF;
    PERFORM pg_notify('{schema}.l' || @.digest(coalesce(NEW.line, OLD.line)), '');
  END IF;
  RETURN NULL;
END $$;

-- What follows is for sessions. The first column of each answer, why, says what has kept the function from doing anything;
-- it is empty if nothing has.

-- f is the format that the process is of. If it may have no session, why is "format", and nothing is done.
-- lacks says what is wrong with the settings of the server: "fsync"; "standby" if a standby follows and commits do not wait for any; "others"
-- if one follows, and more can confirm commits than these wait for, where the owner of this function may see that. A standby is not connected to
-- a database, as a subscriber is, and applies what it gets, which a backup does not, and pg_receivewal. An owner who sees nothing but the names goes by these.
CREATE OR REPLACE FUNCTION @.open(s uuid, t int, f int, OUT why text, OUT format int, OUT oldest int, OUT id uuid, OUT life text, OUT beat bigint, OUT top bigint, OUT clock bigint,
  OUT pid int, OUT lacks text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE longest int;
BEGIN
  PERFORM @.writes();
  IF t NOT BETWEEN 100 AND 3600000 THEN RAISE EXCEPTION 'succession: no session has a session time of % ms', t USING ERRCODE = '22023'; END IF;
  -- Mostly here, as of two who have the lock below, and want more, each waits for the other.
  UPDATE @.meta m SET longest = t WHERE m.longest < t AND f BETWEEN m.oldest AND m.format;
  LOOP
    SELECT m.format, m.oldest, m.id, m.longest INTO format, oldest, id, longest FROM @.meta m FOR SHARE; -- it stays so until the session is there
    IF NOT FOUND THEN RAISE EXCEPTION 'succession: the schema {schema} is not whole: its table meta has no row'; END IF;
    IF f NOT BETWEEN oldest AND format THEN why := 'format'; RETURN; END IF;
    EXIT WHEN longest >= t;
    UPDATE @.meta m SET longest = t; -- confirm has lowered it meanwhile
  END LOOP;
  INSERT INTO @.session VALUES (s, t, @.era(), 1);
  INSERT INTO @.joiner VALUES (s);
  SELECT max(x.last) INTO top FROM @.stripe x;
  clock := (extract(epoch FROM clock_timestamp()) * 1e6)::bigint;
  why := ''; life := @.life(); beat := 1; pid := pg_backend_pid(); lacks := '';
  IF current_setting('fsync') <> 'on' THEN lacks := 'fsync';
  ELSIF NOT EXISTS (SELECT FROM pg_stat_replication r JOIN pg_stat_activity a USING (pid) WHERE a.datid IS NULL
      AND (r.replay_lsn IS NOT NULL OR r.state IS NULL AND r.application_name NOT IN ('pg_basebackup', 'pg_receivewal'))) THEN NULL; -- nobody can take over
  ELSIF current_setting('synchronous_standby_names') = '' THEN lacks := 'standby';
  ELSIF (SELECT count(*) FROM pg_stat_replication r WHERE r.sync_state IN ('sync', 'quorum', 'potential'))
      > coalesce(substring(current_setting('synchronous_standby_names') FROM '(?i)^ *(?:first|any)? *([0-9]+) *[(]')::int, 1) THEN lacks := 'others'; END IF;
END $$;

-- The heartbeat. It tells of other sessions: the next n in a ring, in the order of their ids, and the n / 4 that were opened just before this
-- one, and just after. The package comment says why both. held is the time for which somebody must observe this
-- life, in ms, before anybody may be first in this era; 0 once that is over. Who reads that a session has ended also reads in which life.
-- Without the setting of plan_cache_mode it would be planned each time, because of n.
CREATE OR REPLACE FUNCTION @.beat(s uuid, n int, OUT why text, OUT life text, OUT beat bigint, OUT held int, OUT pid int, OUT others text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
DECLARE own bigint;
BEGIN
  PERFORM @.writes();
  UPDATE @.session x SET beat = x.beat + 1, at = clock_timestamp() WHERE x.id = s AND x.era = @.era() AND x.owner = session_user
    RETURNING x.beat, x.opened INTO beat, own;
  life := @.life();
  IF NOT FOUND THEN why := 'ended'; RETURN; END IF;
  why := ''; pid := pg_backend_pid();
  SELECT CASE WHEN m.era = @.era() THEN 0 ELSE m.longest END INTO held FROM @.meta m;
  SELECT coalesce(string_agg(y.id || ' ' || y.beat || ' ' || y.ttl, ','), '') INTO others FROM (
    SELECT r.id, r.beat, r.ttl FROM (
      (SELECT 0 AS turn, x.id, x.beat, x.ttl FROM @.session x WHERE x.id > s ORDER BY x.id LIMIT n)
      UNION ALL (SELECT 1, x.id, x.beat, x.ttl FROM @.session x WHERE x.id < s ORDER BY x.id LIMIT n)
      ORDER BY turn, id LIMIT n) r
    UNION (SELECT x.id, x.beat, x.ttl FROM @.session x WHERE x.opened < own ORDER BY x.opened DESC LIMIT n / 4)
    UNION (SELECT x.id, x.beat, x.ttl FROM @.session x WHERE x.opened > own ORDER BY x.opened LIMIT n / 4)) y;
END $$;

-- Whoever calls this has seen each of the sessions with just this number for its session time and a twentieth, in this life.
-- The clock of the server does not make that safe. It keeps roles that may only look from ending sessions by a call, unless it
-- was set forward since the heartbeat. If it was set back, at is too late, and is put right here: the session ends a session time later.
-- If a transaction has locked the member of one, that one stays, and keeps the others from nothing.
CREATE OR REPLACE FUNCTION @.reap(ids uuid[], beats bigint[], l text, OUT why text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE y record;
BEGIN
  PERFORM @.writes();
  why := '';
  IF l <> @.life() THEN RETURN; END IF;
  PERFORM set_config('lock_timeout', '50ms', true);
  -- In one order: of two who end the same ones, the second then holds nothing that the first waits for.
  FOR y IN SELECT * FROM unnest(ids, beats) AS y (id, beat) ORDER BY 1 LOOP
    BEGIN
      DELETE FROM @.session x WHERE x.id = y.id AND x.beat = y.beat AND clock_timestamp() > x.at + x.ttl * interval '1 ms';
      UPDATE @.session x SET at = clock_timestamp() WHERE x.id = y.id AND x.at > clock_timestamp();
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', '5s', true); -- for the commit, which waits for others that notify
END $$;

-- Whoever calls this has observed this life for as long as beat has said. By then the deadline of each session of an earlier era has passed.
-- If a transaction has locked the member of one, as one does that was prepared, that one stays, and its line waits for it until somebody
-- can end it; the others go on.
CREATE OR REPLACE FUNCTION @.confirm(l text, OUT why text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE y record;
BEGIN
  PERFORM @.writes();
  why := '';
  PERFORM FROM @.meta m WHERE m.era <> @.era() FOR UPDATE; -- nobody opens a session meanwhile
  IF FOUND AND l = @.life() THEN
    PERFORM set_config('lock_timeout', '50ms', true);
    FOR y IN SELECT x.id FROM @.session x WHERE x.era <> @.era() LOOP
      BEGIN
        DELETE FROM @.session x WHERE x.id = y.id;
      EXCEPTION WHEN lock_not_available THEN NULL;
      END;
    END LOOP;
    PERFORM set_config('lock_timeout', '5s', true);
    UPDATE @.meta m SET era = @.era(), longest = (SELECT coalesce(max(x.ttl), 0) FROM @.session x);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION @.close(s uuid, OUT why text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM @.writes();
  DELETE FROM @.session x WHERE x.id = s AND x.owner = session_user;
  why := '';
END $$;

-- ahead is null if nobody stands in front that the member waits for. Then beat is the number of a heartbeat that was made
-- along, or null; it is made if b says so, or where commits wait for a standby. held says that nobody may be first yet.
-- depth is how many stand before the one in front, as far as 256.
CREATE OR REPLACE FUNCTION @.ahead(s uuid, l text, p bigint, b bool, OUT why text, OUT shared bool, OUT pinned bool, OUT ahead bigint, OUT avalue bytea, OUT ashared bool,
  OUT apinned bool, OUT header bytea, OUT beat bigint, OUT held bool, OUT depth int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN; END IF;
  SELECT m.shared, m.session IS NULL, a.pos, a.value, a.shared, a.session IS NULL INTO shared, pinned, ahead, avalue, ashared, apinned
    FROM @.member m LEFT JOIN LATERAL
      (SELECT * FROM @.member f WHERE f.line = l AND f.pos < p AND NOT (f.shared AND m.shared) ORDER BY f.pos DESC LIMIT 1) a ON true
    WHERE m.line = l AND m.pos = p;
  IF NOT FOUND THEN why := 'member'; RETURN; END IF;
  SELECT r.value INTO header FROM @.record r WHERE r.name = l;
  held := false; depth := 0;
  IF ahead IS NULL THEN
    IF b OR current_setting('synchronous_standby_names') <> '' THEN -- a server that was deposed cannot commit there
      PERFORM @.writes();
      UPDATE @.session x SET beat = x.beat + 1, at = clock_timestamp() WHERE x.id = s AND x.era = @.era() AND x.owner = session_user RETURNING x.beat INTO beat;
      IF NOT FOUND THEN why := 'ended'; RETURN; END IF;
    END IF;
    SELECT m.era <> @.era() INTO held FROM @.meta m;
  ELSE
    SELECT count(*) INTO depth FROM (SELECT FROM @.member f WHERE f.line = l AND f.pos < ahead LIMIT 256) f;
  END IF;
  why := '';
END $$;

-- A join. u is the subject if it is a claim, of the item at ip in the line il. After pos it tells what ahead tells, and the record rec.
CREATE OR REPLACE FUNCTION @.join(s uuid, n bigint, l text, v bytea, sh bool, u text, il text, ip bigint, rec text, OUT why text, OUT pos bigint, OUT shared bool, OUT pinned bool,
  OUT ahead bigint, OUT avalue bytea, OUT ashared bool, OUT apinned bool, OUT header bytea, OUT beat bigint, OUT held bool, OUT depth int,
  OUT rvalue bytea, OUT rversion bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE f bigint;
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  SELECT j.burnt INTO f FROM @.joiner j WHERE j.session = s FOR SHARE;
  IF n <= f THEN why := 'burnt'; RETURN; END IF;
  IF il IS NOT NULL AND NOT @.holds(il, ip) THEN why := 'taken'; RETURN; END IF;
  pos := @.next(l);
  IF il IS NOT NULL AND EXISTS (SELECT FROM @.member m WHERE m.line = l AND m.shared AND m.subject = u) THEN why := 'taken'; RETURN; END IF;
  INSERT INTO @.member VALUES (l, pos, s, n, v, sh, u);
  SELECT a.why, a.shared, a.pinned, a.ahead, a.avalue, a.ashared, a.apinned, a.header, a.beat, a.held, a.depth
    INTO why, shared, pinned, ahead, avalue, ashared, apinned, header, beat, held, depth FROM @.ahead(s, l, pos, false) a;
  SELECT r.value, r.version INTO rvalue, rversion FROM @.record r WHERE r.name = rec;
END $$;

-- After a lost answer: no join up to n takes effect any more. pos is where join n stands, if it does.
CREATE OR REPLACE FUNCTION @.burn(s uuid, n bigint, OUT why text, OUT pos bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  UPDATE @.joiner j SET burnt = greatest(j.burnt, n) WHERE j.session = s; -- it waits for a join that is under way
  SELECT m.pos INTO pos FROM @.member m WHERE m.session = s AND m.number = n;
  why := '';
END $$;

CREATE OR REPLACE FUNCTION @.leave(s uuid, l text, p bigint, OUT why text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  why := '';
  DELETE FROM @.member m WHERE m.line = l AND m.pos = p AND (m.session = s OR m.session IS NULL);
  IF NOT FOUND AND EXISTS (SELECT FROM @.member m WHERE m.line = l AND m.pos = p) THEN why := 'denied'; END IF;
END $$;

CREATE OR REPLACE FUNCTION @.stands(s uuid, l text, p bigint, OUT why text, OUT there bool, OUT pinned bool)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN; END IF;
  why := '';
  SELECT true, m.session IS NULL INTO there, pinned FROM @.member m WHERE m.line = l AND m.pos = p;
  there := FOUND;
END $$;

-- The first row has the header and its version, and those that follow have the first n members.
CREATE OR REPLACE FUNCTION @.line(s uuid, l text, n int) RETURNS TABLE (why text, header bytea, version bigint, pos bigint, value bytea, shared bool, pinned bool)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE m record; all_of refcursor;
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN NEXT; RETURN; END IF;
  why := '';
  OPEN all_of FOR SELECT x.pos, x.value, x.shared, x.session IS NULL AS pinned FROM @.member x WHERE x.line = l ORDER BY x.pos LIMIT n; -- as it is now
  SELECT r.value, r.version INTO header, version FROM @.record r WHERE r.name = l;
  RETURN NEXT;
  LOOP
    FETCH all_of INTO m;
    EXIT WHEN NOT FOUND;
    pos := m.pos; value := m.value; shared := m.shared; pinned := m.pinned;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION @.lines(s uuid) RETURNS TABLE (why text, line text, n bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN NEXT; RETURN; END IF;
  why := '';
  RETURN NEXT;
  RETURN QUERY SELECT '', m.line, count(*) FROM @.member m GROUP BY m.line;
END $$;

-- All names at which something is, after a first row that has none: how many stand in the line, the first of them, and the record.
CREATE OR REPLACE FUNCTION @.survey(s uuid) RETURNS TABLE (why text, name text, n bigint, pos bigint, value bytea, shared bool, pinned bool, rvalue bytea, rversion bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN NEXT; RETURN; END IF;
  why := '';
  RETURN NEXT;
  RETURN QUERY SELECT '', coalesce(f.line, r.name), coalesce(f.n, 0), f.pos, f.value, f.shared, f.session IS NULL, r.value, r.version
    FROM (SELECT m.*, h.n FROM (SELECT m.line, min(m.pos) AS pos, count(*) AS n FROM @.member m GROUP BY m.line) h JOIN @.member m USING (line, pos)) f
    FULL JOIN @.record r ON r.name = f.line;
END $$;

-- The members of a line that nobody has joined or appended, after a first row that has none.
CREATE OR REPLACE FUNCTION @.imported(s uuid, l text) RETURNS TABLE (why text, pos bigint, value bytea, shared bool, pinned bool)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN NEXT; RETURN; END IF;
  why := '';
  RETURN NEXT;
  RETURN QUERY SELECT '', m.pos, m.value, m.shared, true FROM @.member m WHERE m.line = l AND m.session IS NULL AND m.number IS NULL ORDER BY m.pos;
END $$;

CREATE OR REPLACE FUNCTION @.pin(s uuid, l text, p bigint, h bytea, at bigint, OUT why text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE owner uuid; now @.record; ver bigint;
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  SELECT m.session INTO owner FROM @.member m WHERE m.line = l AND m.pos = p FOR UPDATE;
  IF NOT FOUND THEN why := 'member'; RETURN; END IF;
  IF owner <> s THEN why := 'denied'; RETURN; END IF;
  why := '';
  ver := @.next(l); -- it also keeps others from writing a record that does not exist yet
  SELECT * INTO now FROM @.record r WHERE r.name = l FOR UPDATE;
  IF owner IS NULL AND now.value = h THEN RETURN; END IF; -- it was done before
  IF coalesce(now.version, -1) <> at THEN why := CASE WHEN owner IS NULL THEN 'pinned' ELSE 'version' END; RETURN; END IF;
  UPDATE @.member m SET session = NULL WHERE m.line = l AND m.pos = p;
  INSERT INTO @.record VALUES (l, h, ver) ON CONFLICT (name) DO UPDATE SET value = h, version = ver;
END $$;

CREATE OR REPLACE FUNCTION @.append(s uuid, l text, v bytea, OUT why text, OUT pos bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  why := ''; pos := @.next(l);
  INSERT INTO @.member VALUES (l, pos, NULL, 0, v, false, NULL);
END $$;

CREATE OR REPLACE FUNCTION @.remove(s uuid, l text, p bigint, bl text, bp bigint, OUT why text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  IF NOT @.holds(bl, bp) THEN why := 'member'; RETURN; END IF;
  why := '';
  DELETE FROM @.member m WHERE m.line = l AND m.pos = p AND m.session IS NULL;
  IF NOT FOUND AND EXISTS (SELECT FROM @.member m WHERE m.line = l AND m.pos = p) THEN why := 'denied'; END IF;
END $$;

-- The first item that nobody claims. If somebody stands there who is no item, or no claim, it is that member, and why says so.
CREATE OR REPLACE FUNCTION @.free(s uuid, items text, claims text, OUT why text, OUT pos bigint, OUT value bytea, OUT shared bool, OUT pinned bool)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN; END IF;
  SELECT 'claim', m.pos, m.value, m.shared, m.session IS NULL INTO why, pos, value, shared, pinned FROM @.member m
    WHERE m.line = claims AND NOT (m.shared AND m.subject IS NOT NULL) ORDER BY m.pos LIMIT 1;
  IF FOUND THEN RETURN; END IF;
  SELECT CASE WHEN m.session IS NULL THEN '' ELSE 'item' END, m.pos, m.value, m.shared, m.session IS NULL INTO why, pos, value, shared, pinned FROM @.member m
    WHERE m.line = items AND (m.session IS NOT NULL OR NOT EXISTS
      (SELECT FROM @.member c WHERE c.line = claims AND c.shared AND c.subject = m.pos || ' ' || m.pos)) ORDER BY m.pos LIMIT 1;
  IF NOT FOUND THEN why := 'taken'; END IF;
END $$;

CREATE OR REPLACE FUNCTION @.get(s uuid, n text, OUT why text, OUT value bytea, OUT version bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN; END IF;
  why := '';
  SELECT r.value, r.version INTO value, version FROM @.record r WHERE r.name = n;
END $$;

-- A write of a record or, if v is null, its deletion. at is the version that it must have, 0 for any and -1 for none; ml and mp are the
-- member that must stand, or null.
CREATE OR REPLACE FUNCTION @.put(s uuid, n text, v bytea, at bigint, ml text, mp bigint, OUT why text, OUT ver bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE now bigint;
BEGIN
  IF NOT @.lives(s) THEN why := 'ended'; RETURN; END IF;
  IF ml IS NOT NULL AND NOT @.holds(ml, mp) THEN why := 'member'; RETURN; END IF;
  ver := @.next(n); -- it also keeps others from writing a record that does not exist yet
  SELECT r.version INTO now FROM @.record r WHERE r.name = n FOR UPDATE;
  IF at <> 0 AND coalesce(now, -1) <> at THEN why := 'version'; RETURN; END IF;
  why := '';
  IF v IS NULL THEN DELETE FROM @.record r WHERE r.name = n;
  ELSE INSERT INTO @.record VALUES (n, v, ver) ON CONFLICT (name) DO UPDATE SET value = v, version = ver; END IF;
END $$;

-- The records directly below dir, after a first row that has none; w says whether with their values.
CREATE OR REPLACE FUNCTION @.list(s uuid, dir text, w bool) RETURNS TABLE (why text, name text, value bytea, version bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.session x WHERE x.id = s AND x.era = @.era()) THEN why := 'ended'; RETURN NEXT; RETURN; END IF;
  why := '';
  RETURN NEXT;
  RETURN QUERY SELECT '', r.name, CASE WHEN w THEN r.value END, r.version FROM @.record r
    WHERE r.name > dir || '/' AND r.name < dir || '0' AND strpos(substr(r.name, length(dir) + 2), '/') = 0 ORDER BY r.name;
END $$;

-- For transactions of users.

-- Whether the member leads its election. If it does, nobody leads after it before this transaction ends.
CREATE OR REPLACE FUNCTION @.leads(election text, pos bigint) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE sh bool;
BEGIN
  SELECT m.shared INTO sh FROM @.member m JOIN @.session x ON x.id = m.session AND x.era = @.era()
    WHERE m.line = leads.election AND m.pos = leads.pos FOR KEY SHARE OF m;
  RETURN FOUND AND NOT EXISTS (SELECT FROM @.member f WHERE f.line = leads.election AND f.pos < leads.pos AND NOT (f.shared AND sh))
    AND EXISTS (SELECT FROM @.meta t WHERE t.era = @.era());
END $$;

-- Makes the commit of this transaction fail with SQLSTATE SU001 if the member does not lead its election then. It looks at
-- the commit: what it locks, it would otherwise lock for as long as the transaction lasts, and nobody could lead after
-- a leader that has vanished in the middle of one.
CREATE OR REPLACE FUNCTION @.guard(election text, pos bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM @.member m WHERE m.line = guard.election AND m.pos = guard.pos) THEN
    RAISE EXCEPTION 'succession: there is no member % in % any more, or it is not in the schema {schema} of this database', guard.pos, guard.election USING ERRCODE = 'SU001';
  END IF;
  INSERT INTO @.guarded (election, pos) VALUES (guard.election, guard.pos);
END $$;

CREATE OR REPLACE FUNCTION @.at_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM @.synced(); -- a server that was deposed must not commit it
  IF NOT @.leads(NEW.election, NEW.pos) THEN
    RAISE EXCEPTION 'succession: member % does not lead % any more', NEW.pos, NEW.election USING ERRCODE = 'SU001';
  END IF;
  DELETE FROM @.guarded g WHERE g.n = NEW.n;
  RETURN NULL;
END $$;

DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = to_regnamespace('@') AND p.proname = ANY ('{{functions}}') LOOP
    EXECUTE 'REVOKE ALL ON FUNCTION ' || f || ' FROM PUBLIC';
  END LOOP;
END $$;

-- What locks tables is done once.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM @.meta m WHERE m.format >= 2) THEN
    PERFORM set_config('lock_timeout', '100ms', true); -- heartbeats wait for as long as this waits for others, such as a dump
    ALTER TABLE @.session ADD COLUMN IF NOT EXISTS opened bigint GENERATED ALWAYS AS IDENTITY;
    CREATE INDEX IF NOT EXISTS session_opened ON @.session (opened);
  END IF;
  IF NOT EXISTS (SELECT FROM @.meta m WHERE m.format >= 3) THEN -- before, names fell to other stripes
    UPDATE @.stripe SET last = (SELECT max(x.last) FROM @.stripe x);
  END IF;
  IF NOT EXISTS (SELECT FROM @.meta) THEN
    CREATE INDEX ON @.member (line, pos) WHERE NOT shared;
    CREATE INDEX ON @.member (line, subject) WHERE shared;
    CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE OF session ON @.member FOR EACH ROW EXECUTE FUNCTION @.tell();
    CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON @.record FOR EACH ROW EXECUTE FUNCTION @.tell();
    CREATE TRIGGER tell AFTER DELETE ON @.session FOR EACH ROW EXECUTE FUNCTION @.tell();
    CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON @.guarded DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION @.at_commit();
    ALTER TABLE @.guarded ENABLE ALWAYS TRIGGER at_commit; -- also where session_replication_role is replica
    INSERT INTO @.stripe SELECT n, 0 FROM generate_series(0, 63) n;
    INSERT INTO @.meta VALUES (true, {format}, {oldest}, gen_random_uuid(), @.era(), 0);
  END IF;
  UPDATE @.meta SET format = {format}, oldest = {oldest} WHERE format < {format};
END $$;
