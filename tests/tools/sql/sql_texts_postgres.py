"""SQL texts for PostgreSQL alone, over the schema in `databases.py`; policy: everything but `vault`
can be read.
"""

POSTGRES_REFUSED = [
    # reading the denied table by PostgreSQL's own ways
    "TABLE vault",
    "SELECT * FROM ONLY vault",
    "SELECT * FROM vault *",
    "SELECT * FROM public.vault",
    'SELECT * FROM "public"."vault"',
    "SELECT * FROM postgres.public.vault",
    "SELECT v FROM vault v",
    "SELECT row_to_json(v) FROM vault v",
    "SELECT (v).secret FROM vault AS v",
    "SELECT to_jsonb(v) ->> 'secret' FROM vault v",
    "SELECT ARRAY(SELECT secret FROM vault)",
    "SELECT * FROM people, LATERAL (SELECT secret FROM vault) AS s",
    "SELECT DISTINCT ON ((SELECT secret FROM vault LIMIT 1)) name FROM people",
    "SELECT name FROM people FETCH FIRST (SELECT count(*) FROM vault) ROWS ONLY",
    "SELECT string_agg(name, (SELECT secret FROM vault LIMIT 1)) FROM people",
    "SELECT * FROM ROWS FROM (unnest(ARRAY(SELECT secret FROM vault))) AS t(x)",
    "SELECT * FROM vault TABLESAMPLE SYSTEM (100)",
    'WITH "Vault" AS (SELECT 1 AS secret) SELECT * FROM vault',
    'WITH "VAULT" AS (SELECT 1 AS secret) SELECT * FROM vault',
    'WITH "VAULT" AS (SELECT 1 AS secret) SELECT * FROM VAULT',
    "WITH vault AS MATERIALIZED (SELECT * FROM vault) SELECT * FROM vault",
    "WITH a AS (SELECT * FROM vault), vault AS (SELECT 1) SELECT * FROM a",
    "SELECT * FROM through_view TABLESAMPLE BERNOULLI (100)",
    "SELECT our_macro()",
    "SELECT leak(p) FROM people p",
    "SELECT p.leak FROM people p",
    "SELECT (p).leak FROM people p",
    "SELECT people.leak FROM people",
    "SELECT shout('x')",
    "SELECT sales.lower('x')",
    "SELECT public.shout('x')",
    "SELECT * FROM our_macro()",
    "SELECT NULL::vault",
    "SELECT (NULL::vault).secret",
    "SELECT CAST(NULL AS public.vault)",
    "SELECT json_populate_record(NULL::vault, '{}')",
    "SELECT * FROM json_populate_recordset(NULL::vault, '[{}]')",
    "SELECT 'vault'::regclass",
    "SELECT 'vault'::regclass::oid::int",
    "SELECT 'lower'::regproc",
    "SELECT to_regclass('vault')",
    "SELECT has_table_privilege('vault', 'SELECT')",
    "SELECT pg_relation_size('vault')",
    "SELECT pg_get_viewdef('through_view')",
    "SELECT row_security_active('vault')",
    "SELECT U&\"\\0070g_read_file\"('/etc/passwd')",
    # the catalogue
    "SELECT * FROM pg_class",
    "SELECT * FROM pg_tables",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT rolname, rolpassword FROM pg_authid",
    "SELECT * FROM pg_user_mappings",
    "SELECT * FROM pg_settings",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM pg_stats WHERE tablename = 'vault'",
    "SELECT * FROM pg_stat_statements",
    "SELECT * FROM information_schema.columns",
    "SELECT * FROM pg_locks",
    "SELECT * FROM pg_largeobject",
    # functions that reach out
    "SELECT pg_read_binary_file('/etc/passwd')",
    "SELECT pg_catalog.pg_read_file('/etc/passwd')",
    "SELECT \"pg_read_file\"('/etc/passwd')",
    "SELECT PG_READ_FILE('/etc/passwd')",
    "SELECT * FROM pg_read_file('/etc/passwd') AS t",
    "SELECT pg_ls_logdir()",
    "SELECT * FROM pg_ls_waldir()",
    "SELECT lo_export(1, '/tmp/longtable-out')",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_create(0)",
    "SELECT lo_get(1)",
    "SELECT loread(lo_open(1, 262144), 10)",
    "SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t(x int)",
    "SELECT dblink_connect('dbname=postgres')",
    "SELECT * FROM crosstab('SELECT 1, 2, 3') AS t(a int, b int)",
    "SELECT * FROM connectby('vault', 'id', 'id', '1', 0) AS t(a text, b text, c int)",
    "SELECT query_to_xml('SELECT * FROM vault', true, false, '')",
    "SELECT query_to_xmlschema('SELECT * FROM vault', true, false, '')",
    "SELECT table_to_xml('vault', true, false, '')",
    "SELECT schema_to_xml('public', true, false, '')",
    "SELECT cursor_to_xml('c', 1, true, false, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(secret) FROM vault')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT to_tsquery(secret), to_tsquery(secret) FROM vault')",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT set_config('statement_timeout', '0', true)",
    "SELECT set_config('role', 'postgres', false)",
    "SELECT current_setting('data_directory')",
    "SELECT nextval('counter')",
    "SELECT setval('counter', 5)",
    "SELECT currval('counter')",
    "SELECT last_value FROM counter",
    "SELECT setseed(0.5)",
    "SELECT txid_current()",
    "SELECT pg_current_xact_id()",
    "SELECT pg_export_snapshot()",
    "SELECT pg_notify('channel', 'payload')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_lock(1)",
    "SELECT pg_advisory_xact_lock(1)",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_sleep_for('1 minute')",
    "SELECT pg_sleep_until(now() + interval '1 minute')",
    "SELECT name FROM people WHERE pg_sleep(1) IS NULL",
    "SELECT pg_stat_get_activity(NULL)",
    "SELECT pg_log_backend_memory_contexts(1)",
    "SELECT pg_logical_emit_message(true, 'a', 'b')",
    "SELECT pg_create_restore_point('x')",
    "SELECT inet_server_addr()",
    # other statements
    "SELECT * FROM people FOR UPDATE",
    "SELECT * FROM people FOR SHARE NOWAIT",
    "SELECT * FROM people FOR NO KEY UPDATE SKIP LOCKED",
    "SELECT name INTO TEMP copy FROM people",
    "CREATE TEMP TABLE people AS SELECT * FROM vault",
    "WITH u AS (UPDATE people SET name = 'x' RETURNING *) SELECT * FROM u",
    (
        "WITH m AS (MERGE INTO people USING audit ON false WHEN NOT MATCHED THEN DO NOTHING"
        " RETURNING *) SELECT * FROM m"
    ),
    "MERGE INTO people USING audit ON false WHEN MATCHED THEN DELETE",
    "COPY vault TO STDOUT",
    "COPY (SELECT * FROM vault) TO '/tmp/longtable-out'",
    "COPY people FROM PROGRAM 'id'",
    "DO 'BEGIN PERFORM 1; END'",
    "CALL anything()",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DECLARE c CURSOR FOR SELECT * FROM vault",
    "FETCH ALL FROM longtable",
    "CLOSE longtable",
    "LISTEN channel",
    "NOTIFY channel",
    "LOCK TABLE people",
    "SHOW data_directory",
    "SET ROLE postgres",
    "RESET ALL",
    "DISCARD ALL",
    "SAVEPOINT s",
    "REFRESH MATERIALIZED VIEW by_city",
    "REINDEX TABLE people",
    "CLUSTER people",
    "CHECKPOINT",
    "LOAD 'plpgsql'",
    "GRANT SELECT ON vault TO PUBLIC",
    "ALTER SYSTEM SET work_mem = '1GB'",
    "SECURITY LABEL ON TABLE people IS 'x'",
    "IMPORT FOREIGN SCHEMA x FROM SERVER y INTO public",
    "SELECT 1) AS a; DELETE FROM people; --",
    "SELECT 1 /* /* */ ; DELETE FROM people",
    "SELECT 1 \\; DELETE FROM people",
    # what sqlglot and the server read in two ways
    "SELECT 1_000",
    "SELECT 0x1F",
    "SELECT 0b11",
    "SELECT 0o17",
    "SELECT 1 OPERATOR(public.+) 1",
    "SELECT 1 <=> 2",
    # a value, a series or a list of any size out of nothing
    "SELECT repeat('x', 1000000000)",
    "SELECT repeat(repeat('x', 10000), 10000)",
    "WITH a AS (SELECT repeat('x', 10000) AS s) SELECT repeat(s, 10000) FROM a",
    "SELECT length(lpad('x', 1000000000, 'ab'))",
    "SELECT length(rpad('x', n * 1000)) FROM numbers",
    "SELECT length(repeat('x', n * 100)) FROM numbers",
    "SELECT repeat('x', (random() * 1000000000)::int)",
    "SELECT length(format('%1000000000s', 'x'))",
    "SELECT length(format('%*s', 1000000000, 'x'))",
    "SELECT array_fill(0, ARRAY[100000000])",
    "SELECT count(*) FROM generate_series(1, 1000000000000)",
    "SELECT count(*) FROM generate_series(1, 10000000, 1) AS g",
    "SELECT generate_series(1, 1000000000)",
    "SELECT count(*) FROM generate_series(1, 1000, 0.0000001)",
    "SELECT count(*) FROM numbers, generate_series(1, n * 1000000)",
    "SELECT count(*) FROM generate_series(1, (SELECT 1000000000))",
    "SELECT count(*) FROM generate_series(1, (random() * 1e12)::bigint)",
    (
        "SELECT count(*) FROM generate_series(timestamp '1900-01-01', timestamp '2100-01-01',"
        " interval '1 microsecond')"
    ),
    (
        "SELECT count(*) FROM generate_series(timestamp '1900-01-01', timestamp '2100-01-01', '1"
        " second')"
    ),
    (
        "SELECT count(*) FROM generate_series(timestamp '1900-01-01', timestamp '2100-01-01',"
        " '0.00001 day'::interval)"
    ),
    (
        "SELECT count(*) FROM generate_series(timestamp '1900-01-01', timestamp '2100-01-01',"
        " interval '1' second)"
    ),
    (
        "SELECT count(*) FROM generate_series(timestamp '1900-01-01', timestamp '2100-01-01',"
        " (SELECT interval '1 us'))"
    ),
    "SELECT gen_random_bytes(1000)",
]

POSTGRES_STOPPED = [
    "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    "SELECT a.n FROM numbers a, numbers b, numbers c ORDER BY a.n * b.n % 1001",
    "SELECT a.n FROM numbers a, numbers b",
    "SELECT g FROM generate_series(1, 1000000) AS g",
    "SELECT unnest(ARRAY(SELECT g FROM generate_series(1, 1000000) AS g))",
    (
        "WITH RECURSIVE t(x) AS (SELECT 1::bigint UNION ALL SELECT x + 1 FROM t) SELECT count(*)"
        " FROM t"
    ),
    (
        "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) SELECT"
        " max(length(s)) FROM t"
    ),
    (
        "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t WHERE length(s) <"
        " 100000000) SELECT s FROM t"
    ),
    (
        "WITH RECURSIVE t(x, y) AS (SELECT 1, 1 UNION ALL SELECT x + 1, y * 2 % 7 FROM t) SELECT x"
        " FROM t WHERE y > 10"
    ),
    "SELECT string_agg(repeat('x', 10000), '') FROM numbers a, numbers b",
    "SELECT array_agg(a.n * b.n) FROM numbers a, numbers b, numbers c",
    "SELECT jsonb_agg(a) FROM numbers a, numbers b, numbers c",
    "SELECT count(DISTINCT a.n * 4000000 + b.n * 2000 + c.n) FROM numbers a, numbers b, numbers c",
    "SELECT repeat('x', 10000) FROM numbers",
    "SELECT sum(ln(a.n::numeric) * sqrt(b.n::numeric)) FROM numbers a, numbers b, numbers c",
    (
        "SELECT count(*) FROM numbers a, numbers b WHERE repeat('a', 3000) || a.n || b.n ~"
        " '(a+)+(a+)+(a+)+b'"
    ),
    "SELECT factorial(2000) * factorial(a.n) FROM numbers a, numbers b",
    (
        "SELECT a.n, sum(a.n) OVER (ORDER BY b.n RANGE BETWEEN 1999 PRECEDING AND CURRENT ROW) FROM"
        " numbers a, numbers b"
    ),
]

POSTGRES_ALLOWED = [
    "SELECT public.people.name FROM public.people",
    "TABLE people",
    "SELECT * FROM ONLY people",
    "SELECT DISTINCT ON (city) city, name FROM people ORDER BY city, id",
    (
        "SELECT id::text, salary::numeric(10, 2), CAST(id AS varchar(5)), '2024-01-01'::date FROM"
        " people"
    ),
    "SELECT p.name, x.n FROM people p CROSS JOIN LATERAL (SELECT p.id + 1 AS n) AS x",
    "SELECT p.name, g FROM people p, LATERAL generate_series(1, p.id) AS g",
    "SELECT i, o FROM generate_series(1, 10, 3) WITH ORDINALITY AS t(i, o)",
    (
        "SELECT d::date FROM generate_series(date '2024-01-01', date '2024-03-01', interval '1"
        " month') AS d"
    ),
    (
        "SELECT d FROM generate_series('2024-01-01'::timestamp, '2024-01-02'::timestamp, '15"
        " minutes'::interval) AS d"
    ),
    "SELECT d FROM generate_series(timestamp '2024-01-01', timestamp '2024-02-01', '1 day') AS d",
    (
        "SELECT m, count(a.created) FROM generate_series((SELECT min(created) FROM audit), now(),"
        " '1 month') AS m LEFT JOIN audit a ON date_trunc('month', a.created) = m GROUP BY m ORDER"
        " BY m"
    ),
    "SELECT generate_series(1, 3), unnest(ARRAY[1, 2])",
    "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b']) AS t(a, b)",
    (
        "SELECT ARRAY[1, 2, 3], (ARRAY[1, 2, 3])[1], (ARRAY[1, 2, 3])[1:2], ARRAY(SELECT id FROM"
        " people)"
    ),
    (
        "SELECT tags[1], array_length(tags, 1), cardinality(tags), 'a' = ANY (tags), tags ||"
        " ARRAY['x'], tags && ARRAY['a'] FROM nested"
    ),
    (
        "SELECT doc -> 'kind', doc ->> 'kind', doc #> '{kind}', doc #>> '{kind}', doc @>"
        " '{\"kind\": \"bolt\"}', doc - 'kind' FROM nested"
    ),
    (
        "SELECT doc ? 'kind', doc ?| ARRAY['kind'], doc @? '$.kind', jsonb_path_query(doc, '$.*'),"
        " jsonb_typeof(doc) FROM nested"
    ),
    "SELECT * FROM nested, jsonb_each_text(doc)",
    "SELECT * FROM jsonb_to_recordset('[{\"a\": 1}]') AS x(a int, b text)",
    "SELECT value FROM jsonb_array_elements('[1, 2]') AS value",
    "SELECT jsonb_build_object('a', id, 'b', name), to_jsonb(p), row_to_json(p) FROM people p",
    "SELECT json_agg(p), jsonb_object_agg(name, id), array_agg(name ORDER BY id) FROM people p",
    (
        "SELECT feeling, feeling::text, 'ok'::mood, enum_range(NULL::mood) FROM nested WHERE"
        " feeling >= 'ok'"
    ),
    "SELECT mail, 'bo@example.com'::email FROM nested",
    "SELECT 'ok'::public.mood, ARRAY['ok']::mood[] FROM nested",
    (
        "SELECT count(*) FILTER (WHERE id > 1), percentile_cont(0.5) WITHIN GROUP (ORDER BY"
        " salary), mode() WITHIN GROUP (ORDER BY city) FROM people"
    ),
    "SELECT city, count(*), grouping(city) FROM people GROUP BY GROUPING SETS ((city), ())",
    "SELECT city, count(*) FROM people GROUP BY ROLLUP (city)",
    "SELECT city, boss_id, count(*) FROM people GROUP BY CUBE (city, boss_id)",
    (
        "SELECT sum(id) OVER (PARTITION BY city ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND"
        " CURRENT ROW EXCLUDE TIES) FROM people"
    ),
    "SELECT sum(id) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM people",
    (
        "SELECT created + interval '3 days', age(created), now() - created, date_trunc('month',"
        " created), created + 5 FROM audit"
    ),
    (
        "SELECT extract(year FROM created), date_part('dow', created), to_char(created, 'YYYY-MM'),"
        " make_date(2024, 1, 1) FROM audit"
    ),
    (
        "SELECT timestamp '2024-01-01' AT TIME ZONE 'UTC', timestamptz '2024-01-01 00:00+00',"
        " extract(epoch FROM now())"
    ),
    "SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', date '2024-03-01')",
    "SELECT date_bin('15 minutes', timestamp '2024-01-01 00:20', timestamp '2024-01-01')",
    "SELECT name FROM people WHERE name ~ '^A' OR name ~* 'a' OR name !~ 'x' OR name !~* 'y'",
    (
        "SELECT name FROM people WHERE name ILIKE 'a%' OR name SIMILAR TO 'A.*' OR name NOT ILIKE"
        " 'x' OR name LIKE 'a!%' ESCAPE '!'"
    ),
    (
        "SELECT name FROM people WHERE id = ANY (ARRAY[1, 2]) AND id <> ALL (ARRAY[5]) AND id = ANY"
        " (SELECT id FROM people)"
    ),
    (
        "SELECT ROW(1, 2) = ROW(1, 2), (1, 2) < (1, 3), 1 IS DISTINCT FROM NULL, NULL IS NOT"
        " DISTINCT FROM NULL"
    ),
    (
        "SELECT position('a' IN name), substring(name FROM 1 FOR 2), overlay(name PLACING 'x' FROM"
        " 1), trim(BOTH 'x' FROM name) FROM people"
    ),
    (
        "SELECT concat_ws('-', name, city), format('%s-%s', name, city), initcap(name),"
        " split_part(name, 'a', 1), left(name, 2) FROM people"
    ),
    (
        "SELECT regexp_replace(name, 'a', 'b', 'g'), regexp_match(name, 'a'), translate(name, 'a',"
        " 'b'), reverse(name), md5(name) FROM people"
    ),
    (
        "SELECT string_agg(name, ', ' ORDER BY name), bool_and(id > 0), every(id > 0), corr(id,"
        " salary), stddev(salary) FROM people"
    ),
    "SELECT repeat('*', id), lpad(name, 10, '.'), rpad(name, id + 3, '.') FROM people",
    "SELECT * FROM people TABLESAMPLE SYSTEM (50)",
    "SELECT * FROM people TABLESAMPLE BERNOULLI (50) REPEATABLE (1)",
    "SELECT name FROM people ORDER BY salary FETCH FIRST 2 ROWS WITH TIES",
    "SELECT name FROM people ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
    "SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS t(a, b)",
    "WITH x AS MATERIALIZED (SELECT 1 AS a) SELECT a FROM x",
    "WITH x AS NOT MATERIALIZED (SELECT 1 AS a) SELECT a FROM x",
    'WITH "Vault" AS (SELECT 1 AS a) SELECT a FROM "Vault"',
    (
        "SELECT to_tsvector('english', name) @@ to_tsquery('english', 'ada'),"
        " ts_rank(to_tsvector(name), plainto_tsquery('x')) FROM people"
    ),
    "SELECT similarity(name, 'ada'), name % 'ada', name <-> 'ada' FROM people",
    "SELECT $$it's; DROP TABLE people$$, E'a\\'b\\n', U&'d\\0061t', B'101', X'1F'",
    "SELECT $tag$ a $$ b $tag$",
    "SELECT 7 / 2, 7 % 3, 2 ^ 3, 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, |/ 4.0",
    (
        "SELECT '10.0.0.1'::inet << '10.0.0.0/8'::inet, '[1,3)'::int4range @> 2, int4range(1, 3) *"
        " int4range(2, 5)"
    ),
    'SELECT name COLLATE "C" FROM people ORDER BY name COLLATE "C"',
    (
        "SELECT current_date, current_user, current_schema, current_database(), version(),"
        " clock_timestamp()"
    ),
    "SELECT p.* FROM people AS p WHERE p.* IS NOT NULL",
    "SELECT p FROM people p",
    "SELECT (p).name FROM people p",
    "SELECT a.n FROM generate_series(1, 3) a(n) FULL JOIN generate_series(2, 4) b(n) ON a.n = b.n",
    "SELECT amount FROM sales.items",
    "SELECT items.amount, p.name FROM sales.items JOIN people p ON p.id = items.id",
    "SELECT taken, value FROM measures WHERE taken >= '2024-01-01'",
    "SELECT * FROM by_city ORDER BY people DESC",
    'SELECT "FirstName" FROM "Mixed"',
    "SELECT pg_typeof(salary), pg_size_pretty(12345::bigint) FROM people",
    "SELECT pg_catalog.lower(name) FROM people",
    (
        "SELECT to_hex(255), 5 OPERATOR(pg_catalog.+) 3, id IN (1, 2) AND id = SOME (ARRAY[1]) FROM"
        " people"
    ),
    (
        "SELECT width_bucket(salary, 0, 100, 5), round(salary::numeric, 2), trunc(1.5), mod(5, 3),"
        " div(5, 3), greatest(1, 2) FROM people"
    ),
    "SELECT interval '1 year 2 months', make_interval(days => 5), justify_days(interval '40 days')",
    "SELECT id FROM people UNION ALL (SELECT id FROM people ORDER BY id LIMIT 1)",
    "SELECT salary BETWEEN SYMMETRIC 100 AND 1, NULL IS UNKNOWN, TRUE IS NOT TRUE FROM people",
    "SELECT 'pg_sleep(10)', 'lo_import(1)' AS \"pg_read_file(\"",
    "SELECT name /* pg_sleep(1) */ FROM people -- set_config('a', 'b', true)",
]
