"""A second corpus, written after the walls stood and not tuned on before its first run; schema and
policy of `evals/fuzz.py`.

`REFUSE`: must be refused or fail. `QUIET`: may run, but must bring out nothing denied, and masked
values to nobody but the person. `STOP`: must end in a typed error within the limits. `RUN`: is
harmless, and must run.
"""

from tests.tools.sql.sql_texts_clickhouse import (
    CLICKHOUSE_QUIET,
    CLICKHOUSE_RUN,
    CLICKHOUSE_SECOND_REFUSE,
    CLICKHOUSE_SECOND_STOP,
)

REFUSE = {
    "all": [
        # writing in other words
        "MERGE INTO people USING staff ON people.id = staff.id WHEN MATCHED THEN DELETE",
        "TRUNCATE people",
        "REPLACE INTO people (id) VALUES (9)",
        "INSERT INTO people DEFAULT VALUES RETURNING *",
        "WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x",
        "WITH x AS (INSERT INTO people (id) VALUES (77) RETURNING id) SELECT id FROM x",
        "WITH x AS (UPDATE people SET name = 'q' RETURNING *) SELECT count(*) FROM x",
        "SELECT * FROM (DELETE FROM people RETURNING *) AS d",
        "CREATE TEMP TABLE copy AS SELECT * FROM people",
        "CREATE INDEX i ON people (name)",
        "CREATE TRIGGER t AFTER INSERT ON people BEGIN SELECT 1; END",
        "REINDEX",
        "VACUUM",
        "CHECKPOINT",
        "SAVEPOINT s",
        "RELEASE s",
        "GRANT ALL ON people TO PUBLIC",
        "SET search_path = other",
        "RESET ALL",
        "LOCK TABLE people",
        "COMMENT ON TABLE people IS 'x'",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE ALL",
        "LISTEN x",
        "DO 'begin end'",
        "CALL pragma_version()",
        "USE memory",
        "LOAD httpfs",
        "INSTALL httpfs",
        "EXPORT DATABASE 'x'",
        "IMPORT DATABASE 'x'",
        "SELECT 1 FOR UPDATE",
        "SELECT * FROM people FOR SHARE",
        "SELECT name FROM people;\n\n-- and now\nDROP TABLE people",
        "SELECT 'it''s'; DELETE FROM people; --'",
        "SELECT 1 \\; DROP TABLE people",
        "SELECT name FROM people WHERE name = 'x\\'; DROP TABLE people; --'",
        # the denied table, by detours
        "SELECT p.name FROM people p WHERE (SELECT count(*) FROM vault v WHERE v.id = p.id) > 0",
        "SELECT name FROM people ORDER BY (SELECT count(*) FROM vault), name",
        "SELECT count(*) FROM people p FULL JOIN vault v ON p.id = v.id",
        "SELECT coalesce((SELECT secret FROM vault LIMIT 1), 'none')",
        "SELECT * FROM (VALUES ((SELECT secret FROM vault))) AS t",
        "WITH a AS (SELECT 1), b AS (SELECT * FROM vault) SELECT * FROM a",
        "WITH vault AS (SELECT 1 AS n) SELECT * FROM vault JOIN main.vault AS v ON true",
        "SELECT * FROM people WHERE name LIKE (SELECT secret FROM vault) || '%'",
        "SELECT name FROM people WHERE id BETWEEN 0 AND (SELECT max(id) FROM vault)",
        "SELECT max((SELECT secret FROM vault LIMIT 1)) FROM people",
        "SELECT name FROM people UNION ALL (SELECT secret FROM vault ORDER BY 1 LIMIT 1)",
        "(SELECT name FROM people) UNION (SELECT secret FROM (SELECT * FROM vault) AS q)",
        "SELECT * FROM people CROSS JOIN (SELECT 1 AS one) AS o, (SELECT secret FROM vault) AS s",
        "SELECT * FROM through_two_views AS harmless",
        'SELECT * FROM "VAULT" AS "people"',
        'SELECT "secret" FROM /* people */ vault',
        "SELECT*FROM(vault)",
        "SELECT * FROM ((vault))",
        (
            "SELECT * FROM people JOIN (vault JOIN staff ON vault.id = staff.id) ON people.id ="
            " staff.id"
        ),
        # what the engine tells of itself
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM duckdb_columns()",
        "SELECT * FROM pg_stats",
        "SELECT * FROM pg_settings",
        "SELECT * FROM information_schema.columns WHERE table_name = 'vault'",
    ],
    "sqlite": [
        "SHOW TABLES",
        "SELECT * FROM pragma_table_xinfo('staff')",
        "SELECT * FROM json_each((SELECT group_concat(secret) FROM vault))",
        "SELECT * FROM main.sqlite_master",
        "SELECT sqlite_compileoption_get(1)",
        "SELECT load_extension('x', 'y')",
        "SELECT sqlite_source_id()",
        "SELECT writefile('x', zeroblob(9))",
        "SELECT fts5(NULL)",
        "PRAGMA main.page_count",
        "ATTACH ':memory:' AS m",
        "SELECT * FROM generate_series(1, 5)",
        "SELECT zeroblob(1000000000)",
        "SELECT last_insert_rowid()",
        "SELECT total_changes()",
    ],
    "duckdb": [
        "FROM vault",
        "WITH v AS (SELECT * FROM vault), vault AS (SELECT 1 AS n) SELECT * FROM v",
        "FROM vault SELECT secret",
        "SELECT * FROM query('SELECT * FROM vault')",
        "SELECT * FROM query_table('vault')",
        "SELECT * FROM query_table(['people', 'vault'])",
        "SELECT * FROM read_text('canary.csv')",
        "SELECT * FROM 'canary.csv'",
        "FROM 'canary.csv'",
        "SELECT * FROM read_csv_auto(['canary.csv'])",
        "SELECT * FROM parquet_scan('x.parquet')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pragma_table_info('staff')",
        "SELECT * FROM pragma_storage_info('vault')",
        "SELECT getvariable('x')",
        "SET VARIABLE x = (SELECT secret FROM vault)",
        "SELECT json_execute_serialized_sql(json_serialize_sql('SELECT * FROM vault'))",
        "SELECT json_serialize_sql('SELECT 1')",
        "SELECT * FROM sql_auto_complete('SELECT * FROM v')",
        "SELECT our_macro()",
        "PIVOT vault ON secret",
        "DESCRIBE vault",
        "SUMMARIZE vault",
        "SELECT * FROM (DESCRIBE vault)",
        "SELECT * FROM (SHOW ALL TABLES)",
        "COPY (SELECT 1) TO 'out.csv'",
        "SELECT nextval('s')",
        "SELECT * FROM checkpoint()",
        "SELECT * FROM test_all_types()",
        "SELECT * FROM repeat_row(1, num_rows = 5)",
        "SELECT current_setting('memory_limit')",
        "SELECT * FROM memory.main.vault",
        "ATTACH 'x.duckdb' AS x (READ_WRITE)",
        "SELECT write_log('x')",
        "FORCE CHECKPOINT",
    ],
    "postgres": [
        "SHOW TABLES",
        "TABLE vault ORDER BY 1",
        "WITH v AS (SELECT * FROM vault), vault AS (SELECT 1 AS n) SELECT * FROM v",
        "SELECT * FROM public.vault",
        "SELECT vault FROM public.vault",
        "SELECT pg_read_binary_file('/etc/passwd')",
        "SELECT pg_ls_dir('.')",
        "SELECT pg_stat_file('base')",
        "SELECT lo_get(1)",
        "SELECT lo_put(1, 0, 'x')",
        "SELECT query_to_xml('SELECT * FROM vault', true, false, '')",
        "SELECT table_to_xml('vault', true, false, '')",
        "SELECT database_to_xml(true, true, '')",
        "SELECT dblink_exec('dbname=postgres', 'DROP TABLE x')",
        "SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t(x int)",
        "SELECT * FROM crosstab('SELECT id, secret, secret FROM vault') AS t(a int, b text)",
        "SELECT connectby('vault', 'id', 'id', '1', 0)",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_notify('x', 'y')",
        "SELECT pg_terminate_backend(pg_backend_pid())",
        "SELECT pg_reload_conf()",
        "SELECT set_config('role', 'postgres', false)",
        "SELECT pg_switch_wal()",
        "SELECT nextval('counter')",
        "SELECT setval('counter', 9)",
        "SELECT currval('counter')",
        "SELECT txid_current()",
        "SELECT pg_current_xact_id()",
        "SELECT * FROM pg_stat_activity",
        "SELECT 'vault'::regclass::oid",
        "SELECT has_table_privilege('vault', 'SELECT')",
        "SELECT to_regclass('vault')",
        "SELECT pg_relation_size('vault')",
        "SELECT pg_get_viewdef('through_view'::regclass)",
        "SELECT ts_stat('SELECT to_tsvector(secret) FROM vault')",
        "SELECT sales.lower('x')",
        "SELECT leak(p) FROM people p",
        "SELECT p.leak FROM people p",
        "SELECT xpath_table('id', 'secret', 'vault', '/', 'true')",
        "SELECT (NULL::vault).secret",
        "SELECT json_populate_record(NULL::vault, '{}')",
        "SELECT pg_sleep_for('1 minute')",
        "SELECT pg_export_snapshot()",
        "COPY people TO PROGRAM 'cat'",
        "COPY vault TO STDOUT",
        "SELECT 1 INTO TEMP x",
        "SELECT inet_server_addr()",
        "SELECT version() FROM pg_catalog.pg_proc",
        'SELECT U&"\\0076ault".* FROM U&"\\0076ault"',
        "SELECT $$x$$; DROP TABLE people",
        "SELECT * FROM vault@remote",
        "SELECT current_setting('data_directory')",
    ],
    "mysql": [
        "TABLE vault ORDER BY 1",
        "WITH v AS (SELECT * FROM vault), vault AS (SELECT 1 AS n) SELECT * FROM v",
        "SELECT * FROM mysql.db",
        "SELECT * FROM information_schema.processlist",
        "SELECT * FROM information_schema.user_privileges",
        "SELECT LOAD_FILE(CONCAT('/etc/', 'passwd'))",
        "SELECT 'x' INTO OUTFILE '/tmp/longtable-x'",
        "SELECT our_macro()",
        "SELECT @@version",
        "SELECT @@hostname, @@port",
        "SELECT CURRENT_ROLE()",
        "SELECT SESSION_USER()",
        "SELECT SYS_EXEC('id')",
        "SELECT SYS_EVAL('id')",
        "SELECT SYS_GUID()",
        "SELECT ROW_COUNT()",
        "SELECT FOUND_ROWS()",
        "SELECT LASTVAL(s)",
        "SELECT SETVAL(s, 5)",
        "SELECT BENCHMARK(10, 1)",
        "SELECT DECODE_ORACLE(1, 1)",
        "SELECT SLEEP(0)",
        "SELECT RELEASE_LOCK('x')",
        "SELECT IS_FREE_LOCK('x')",
        "SELECT * FROM people FOR UPDATE NOWAIT",
        "SELECT * FROM people FOR SHARE",
        "SELECT * FROM vault v FORCE INDEX (PRIMARY)",
        "OPTIMIZE TABLE people",
        "REPAIR TABLE people",
        "CHECK TABLE vault",
        "CHECKSUM TABLE vault",
        "HELP 'contents'",
        "XA START 'x'",
        "SAVEPOINT x",
        "USE mysql",
        "RESET QUERY CACHE",
        "PURGE BINARY LOGS TO 'x'",
        "CHANGE MASTER TO MASTER_HOST = 'x'",
        "BACKUP STAGE START",
        "RENAME TABLE people TO x",
        "TRUNCATE people",
        "CREATE FUNCTION f RETURNS INTEGER SONAME 'x.so'",
        "SIGNAL SQLSTATE '45000'",
        "GET DIAGNOSTICS @x = NUMBER",
        "DELIMITER //",
        "\\! id",
        "SELECT 1\\G",
        "SOURCE /etc/passwd",
    ],
    "clickhouse": CLICKHOUSE_SECOND_REFUSE,
}

QUIET = {
    "all": [
        "SELECT s.salary + 0 FROM staff s",
        "SELECT name FROM staff s WHERE EXISTS (SELECT 1 FROM pay p WHERE p.salary = s.salary)",
        "SELECT id, (SELECT q.salary FROM staff q WHERE q.id = s.id) FROM staff s",
        (
            "WITH RECURSIVE r AS (SELECT * FROM staff UNION ALL SELECT * FROM r WHERE 1 = 0) SELECT"
            " * FROM r"
        ),
        "SELECT * FROM staff s JOIN staff t USING (id, name, city, salary)",
        "SELECT * FROM (SELECT * FROM (SELECT * FROM (SELECT * FROM staff) AS a) AS b) AS c",
        "SELECT a.*, b.*, c.* FROM staff a, pay b, badge c",
        "WITH pay AS (SELECT * FROM pay) SELECT * FROM pay NATURAL JOIN staff",
        "SELECT max(x.salary) FROM (SELECT s.* FROM staff s) AS x",
        "SELECT staff.salary AS name FROM staff",
        "SELECT name AS salary, salary AS name FROM staff",
        "SELECT salary FROM (SELECT 1 AS one) AS o, staff",
        (
            "SELECT count(DISTINCT salary), min(salary), max(salary), sum(salary), avg(salary) FROM"
            " staff"
        ),
        "SELECT lag(salary) OVER (ORDER BY salary) FROM staff",
        "SELECT CASE salary WHEN 7000000 THEN 1 ELSE 0 END FROM staff",
        "SELECT name FROM staff WHERE salary IS NOT NULL AND salary BETWEEN 1 AND 99999999",
        "SELECT name FROM staff ORDER BY salary LIMIT 1 OFFSET 1",
        "SELECT NULLIF(salary, 0), ABS(salary), ROUND(salary) FROM staff",
        "SELECT * FROM everything JOIN staff USING (id)",
        "SELECT p.amount FROM paid p, staff s WHERE p.id = s.id",
        "SELECT b.* FROM badge b",
        "SELECT colour FROM badge ORDER BY code",
        "SELECT colour FROM badge GROUP BY colour, code",
        # masked
        "SELECT s.id, s.email || '' FROM staff s",
        "SELECT lower(e.m) FROM (SELECT email AS m FROM staff) AS e",
        (
            "WITH a AS (SELECT email FROM staff), b AS (SELECT email AS x FROM a), c AS (SELECT x"
            " AS y FROM b) SELECT y AS z FROM c"
        ),
        "WITH a(q) AS (SELECT email FROM staff) SELECT q FROM a",
        "WITH a(q, r) AS (SELECT id, email FROM staff) SELECT q AS r, r AS q FROM a",
        "SELECT a.name FROM (SELECT email AS name FROM staff) AS a",
        "SELECT name FROM clean UNION ALL SELECT reached_at FROM contacts",
        "SELECT * FROM (SELECT 'x' AS a, 'y' AS b UNION ALL SELECT name, email FROM staff) AS u",
        "SELECT x.b FROM (SELECT 'x', 'y' UNION ALL SELECT name, email FROM staff) AS x(a, b)",
        "SELECT (SELECT email FROM staff s WHERE s.id = p.id) AS city FROM people p",
        "SELECT name, CASE WHEN email LIKE 'c%' THEN email END AS hint FROM staff",
        "SELECT first_value(email) OVER (ORDER BY id) AS id FROM staff",
        "SELECT substr(email, id, 40) AS part FROM staff",
        "SELECT min(name || email) AS name FROM staff GROUP BY city",
        "SELECT o.* FROM over_contacts o",
        "SELECT r AS kind FROM over_contacts",
        "SELECT max(r) || '' AS name FROM over_contacts",
        "SELECT email AS a FROM staff INTERSECT SELECT reached_at FROM contacts",
        "SELECT name FROM people EXCEPT SELECT email FROM staff",
        "SELECT id FROM staff WHERE CAST(email AS INTEGER) > 0",
        "SELECT t.name FROM staff s JOIN (SELECT id, email AS name FROM staff) AS t ON t.id = s.id",
    ],
    "sqlite": [
        "SELECT rowid, * FROM badge",
        "SELECT b._rowid_ FROM badge AS b",
        "SELECT b.oid + 0 FROM badge AS b",
        "SELECT printf('%s', salary) FROM staff",
        "SELECT iif(salary > 1, salary, 0) FROM staff",
        "SELECT * FROM staff, json_each('[1]') WHERE salary > 0",
        'SELECT "s"."salary" FROM staff AS s',
        'SELECT s."SALARY" FROM staff s WHERE "salary" = \'salary\'',
        "SELECT json_array(s.id, s.salary) FROM staff s",
        "SELECT group_concat(email, ', ') AS names FROM staff",
        "SELECT quote(email) FROM staff",
        "SELECT hex(email) FROM staff",
        "SELECT json_extract(json_object('e', email), '$.e') AS id FROM staff",
        (
            "SELECT j.value FROM (SELECT json_group_array(email) AS a FROM staff) AS t,"
            " json_each(t.a) AS j"
        ),
        'SELECT "upper(email)" FROM (SELECT upper(email) FROM staff)',
    ],
    "duckdb": [
        "SELECT s.* EXCLUDE (email) FROM staff s",
        "SELECT * EXCLUDE (email, id) REPLACE (salary AS city) FROM staff",
        "SELECT COLUMNS(* EXCLUDE (name)) FROM staff",
        "SELECT COLUMNS('.*')::VARCHAR FROM staff",
        "SELECT COLUMNS(lambda c: c = 'salary') FROM staff",
        "SELECT struct_pack(a := salary) FROM staff",
        "SELECT s.salary::VARCHAR[1:2] FROM staff s",
        "SELECT arg_min(s, s.id) FROM staff s",
        "SELECT list(s ORDER BY id) FROM staff s",
        "SELECT first(s) FROM staff s",
        "SELECT struct_keys(s), struct_values(s) FROM staff s",
        "SELECT json_object_agg(name, s) FROM staff s",
        "SELECT json_keys(to_json(s)) FROM staff s",
        "SELECT * FROM staff UNION ALL BY NAME SELECT * FROM pay",
        "SELECT * FROM staff SEMI JOIN pay USING (salary)",
        "SELECT * FROM staff ANTI JOIN pay ON staff.salary = pay.salary",
        "SELECT name FROM staff QUALIFY row_number() OVER (ORDER BY salary) = 1",
        "UNPIVOT staff ON COLUMNS(* EXCLUDE (name, city, email)) INTO NAME n VALUE v",
        "PIVOT (FROM staff) ON salary USING count(*)",
        "SELECT histogram(salary) FROM staff",
        "SELECT max(salary) FILTER (WHERE id = 1) FROM staff",
        "SELECT city, list(salary) FROM staff GROUP BY ALL",
        "SELECT s.email AS e, e AS f, f || '' AS g FROM staff s",
        "SELECT {'a': email}.a AS x FROM staff",
        "SELECT [email][1] AS x FROM staff",
        "SELECT map {'k': email}['k'] AS x FROM staff",
        "SELECT unnest([email]) AS x FROM staff",
        "SELECT list_transform(list(email), x -> upper(x)) AS l FROM staff",
        "SELECT string_split(email, '@')[1] AS x FROM staff",
        "SELECT regexp_extract(email, '(.*)@', 1) AS name FROM staff",
        "SELECT md5(email) AS h, email[1:20] AS p FROM staff",
        "SELECT s::VARCHAR FROM staff s",
        "SELECT any_value(COLUMNS('e.*')) FROM staff",
        "FROM (FROM staff SELECT email AS q) SELECT q",
        "SELECT alias(email), email FROM staff",
        'SELECT "main.staff.email" FROM staff',
        "SELECT hash(s), to_json({'r': s}) FROM staff s",
        "SELECT CAST(email AS STRUCT(a INTEGER)) FROM staff",
        "SELECT strptime(email, '%Y') FROM staff",
        "SELECT x FROM (SELECT unnest(list(email)) AS x FROM staff)",
        "SELECT column0 FROM (SELECT * FROM (VALUES ((SELECT email FROM staff LIMIT 1))))",
        "SELECT row(email) AS r FROM staff",
    ],
    "postgres": [
        "SELECT s.*::text FROM staff s",
        "SELECT (SELECT row_to_json(x) FROM (SELECT s.*) AS x) FROM staff s",
        "SELECT jsonb_object_agg(name, to_jsonb(s)) FROM staff s",
        "SELECT s = ROW(1, 'Ada', 'Bern', 7000000, 'x', NULL) FROM staff s",
        "SELECT (array_agg(s))[1].salary FROM staff s",
        "SELECT (ARRAY(SELECT s FROM staff s))[1]",
        "SELECT max(s.salary::text) FROM staff s",
        "SELECT s.salary::money FROM staff s",
        "SELECT ctid, xmin, salary FROM staff",
        "SELECT tableoid::regclass, * FROM staff",
        "SELECT width_bucket(salary, 0, 10000000, 100) FROM staff",
        "SELECT mode() WITHIN GROUP (ORDER BY salary) FROM staff",
        "SELECT count(*) FILTER (WHERE salary > 7000000) FROM staff",
        "SELECT name FROM staff ORDER BY salary DESC NULLS LAST",
        "SELECT DISTINCT ON (salary) * FROM staff",
        "SELECT * FROM staff s CROSS JOIN LATERAL (SELECT s.salary) AS l",
        "SELECT * FROM staff s LEFT JOIN LATERAL jsonb_each(to_jsonb(s)) AS e ON true",
        "SELECT salary FROM ONLY (staff)",
        "SELECT json_build_object('a', s.salary) FROM staff s",
        "SELECT format('%s %s', s.name, s.salary) FROM staff s",
        "SELECT name || s FROM staff s",
        "SELECT s::text::bytea FROM staff s",
        "SELECT hashtext(s::text) FROM staff s",
        "SELECT quote_literal(s) FROM staff s",
        "SELECT x.email FROM staff s, LATERAL (SELECT (s).*) AS x",
        "SELECT (x).email AS id FROM (SELECT s AS x FROM staff s) AS q",
        "SELECT (x.y).email AS id FROM (SELECT s AS y FROM staff s) AS x",
        'SELECT email COLLATE "C" AS id FROM staff',
        "SELECT convert_to(email, 'UTF8') AS id FROM staff",
        "SELECT encode(email::bytea, 'escape') AS id FROM staff",
        "SELECT regexp_replace(email, 'x', 'y') AS id FROM staff",
        "SELECT regexp_split_to_table(email, 'q') AS id FROM staff",
        "SELECT (regexp_match(email, '.*'))[1] AS id FROM staff",
        "SELECT unnest(string_to_array(email, '@')) AS id FROM staff",
        "SELECT split_part(email, '@', 1) AS id FROM staff",
        "SELECT array_to_string(array_agg(email), ',') AS id FROM staff",
        "SELECT to_jsonb(s) AS id FROM staff s",
        "SELECT v FROM (SELECT jsonb_path_query(to_jsonb(s), '$.*') AS v FROM staff s) AS q",
        "SELECT lower FROM (SELECT lower(email) FROM staff) AS q",
        "SELECT email FROM (SELECT email::varchar FROM staff) AS q",
        "SELECT q.* FROM (SELECT coalesce(email, 'x') FROM staff) AS q",
        "SELECT coalesce FROM (SELECT coalesce(email, 'x') FROM staff) AS q",
        'SELECT "case" FROM (SELECT CASE WHEN true THEN email END FROM staff) AS q',
        "SELECT row FROM (SELECT ROW(email) FROM staff) AS q",
        'SELECT "array" FROM (SELECT ARRAY[email] FROM staff) AS q',
        "SELECT email::uuid FROM staff",
        "SELECT email::interval FROM staff",
        "SELECT to_number(email, '999') FROM staff",
        "SELECT ('{\"a\": \"' || email || '}')::json FROM staff",
        "SELECT n FROM staff, jsonb_to_record(to_jsonb(staff)) AS r(n text, email text)",
        "SELECT r.email FROM staff, jsonb_to_record(to_jsonb(staff)) AS r(n text, email text)",
    ],
    "mysql": [
        "SELECT GROUP_CONCAT(s.salary) FROM staff s",
        "SELECT IF(salary > 7000000, 1, 0) FROM staff",
        "SELECT name FROM staff ORDER BY salary DESC",
        "SELECT * FROM staff NATURAL JOIN pay",
        "SELECT j.x FROM staff s, JSON_TABLE(JSON_ARRAY(s.salary), '$[*]' COLUMNS (x INT PATH '$')) AS j",
        "SELECT COUNT(*) FROM staff GROUP BY salary, FLOOR(RAND(0) * 2)",
        "SELECT EXP(salary) FROM staff",
        "SELECT ~0 + salary FROM staff",
        "SELECT EXTRACTVALUE(1, CONCAT('~', email)) FROM staff",
        "SELECT COUNT(*) FROM staff GROUP BY email, FLOOR(RAND(0) * 2)",
        "SELECT CONVERT(email, UNSIGNED) FROM staff",
        "SELECT ST_GeomFromText(email) FROM staff",
        "SELECT JSON_EXTRACT(email, '$') FROM staff",
        "SELECT DATE_ADD(email, INTERVAL 1 DAY) FROM staff",
        "SELECT INET_ATON(email) FROM staff",
        "SELECT name FROM staff WHERE email = 0",
        "SELECT UUID_TO_BIN(email) FROM staff",
    ],
    "clickhouse": CLICKHOUSE_QUIET,
}

STOP = {
    "all": [
        # cross joins
        "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d, numbers e",
        (
            "SELECT count(*) FROM numbers a CROSS JOIN numbers b CROSS JOIN numbers c CROSS JOIN"
            " numbers d WHERE a.n * b.n - c.n * d.n = 3"
        ),
        "SELECT a.n FROM numbers a, numbers b ORDER BY a.n * b.n",
        "SELECT max(a.n * b.n - c.n * d.n) FROM numbers a, numbers b, numbers c, numbers d",
        (
            "SELECT count(*) FROM numbers a JOIN numbers b ON a.n <> b.n JOIN numbers c ON b.n <>"
            " c.n JOIN numbers d ON c.n <> d.n"
        ),
        # recursion
        "WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM f) SELECT count(*) FROM f",
        (
            "WITH RECURSIVE f(a, b) AS (SELECT 1.0, 1.0 UNION ALL SELECT b, a + b FROM f) SELECT"
            " max(a) FROM f"
        ),
        (
            "WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT 1 FROM f, numbers) SELECT count(*)"
            " FROM f"
        ),
        "WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM f) SELECT n FROM f",
        # strings
        (
            "WITH RECURSIVE f(s) AS (SELECT CAST('xxxxxxxxxx' AS TEXT) UNION ALL SELECT s || s FROM"
            " f) SELECT max(length(s)) FROM f"
        ),
        (
            "SELECT replace(replace(replace(replace(hex(name), '4',"
            " 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'), 'x',"
            " 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'), 'y',"
            " 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'), 'z',"
            " 'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq')"
            " FROM people"
        ),
    ],
    "sqlite": [
        (
            "SELECT count(*) FROM numbers a, numbers b WHERE (a.n || b.n) LIKE"
            " '%1%2%3%4%5%6%7%8%9%' OR (SELECT count(*) FROM numbers c, numbers d) < 0"
        ),
        "SELECT group_concat(a.n || b.n || c.n) FROM numbers a, numbers b, numbers c",
        "SELECT printf('%.*c', 100000000, 'x')",
        (
            "SELECT"
            " hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex('xxxxxxxx'))))))))))))))))))))"
        ),
        (
            "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n GLOB '*1*2*3*' AND b.n"
            " GLOB '*' || c.n || '*'"
        ),
        "SELECT json_group_array(json_array(a.n, b.n, c.n)) FROM numbers a, numbers b, numbers c",
        (
            "SELECT sum(x) FROM (SELECT count(*) OVER (ORDER BY a.n + b.n + c.n) AS x FROM numbers"
            " a, numbers b, numbers c)"
        ),
    ],
    "duckdb": [
        "SELECT count(*) FROM range(1000000000000) AS r(i) WHERE i % 7 = 8 OR sin(i) > 2",
        "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
        "SELECT list(i) FROM range(1000000000) AS r(i)",
        "SELECT string_agg(i, ',') FROM range(1000000000) AS r(i)",
        "SELECT repeat('x', 1000000000)",
        "SELECT len(repeat(repeat('x', 9000), 9000))",
        "SELECT list_reduce(range(100000000), (a, b) -> a + b)",
        (
            "SELECT count(*) FROM generate_series(TIMESTAMP '1970-01-01', TIMESTAMP '9970-01-01',"
            " INTERVAL 1 MICROSECOND)"
        ),
        "SELECT lpad('x', 2000000000, 'y')",
        "SELECT format('{:>2000000000}', 'x')",
        "SELECT printf('%2000000000d', 1)",
        "SELECT array_agg(a.n ORDER BY b.n * c.n) FROM numbers a, numbers b, numbers c",
        (
            "SELECT count(*) FROM numbers a, numbers b, numbers c  WHERE"
            " regexp_matches(a.n::VARCHAR || b.n::VARCHAR, '(1|2|3)*(4|5)*$') OR c.n < 0 ORDER BY 1"
        ),
        "SELECT median(a.n * b.n * c.n) FROM numbers a, numbers b, numbers c",
        (
            "SELECT count(DISTINCT a.n * 1000000 + b.n * 2000 + c.n) FROM numbers a, numbers b,"
            " numbers c"
        ),
        "SELECT list_sort(list(a.n * b.n)) FROM numbers a, numbers b, numbers c",
        "SELECT bitstring('1', 2000000000)",
        (
            "SELECT map_from_entries(list({'k': a.n * b.n, 'v': c.n})) FROM numbers a, numbers b,"
            " numbers c"
        ),
        "SELECT range(10000000000)",
        "SELECT unnest(range(1000000000))",
    ],
    "postgres": [
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
        "SELECT generate_series(1, 1000000000)",
        "SELECT count(*) FROM generate_series(1, 900000) a, generate_series(1, 900000) b",
        "SELECT array_agg(i) FROM generate_series(1, 1000000000) AS g(i)",
        "SELECT string_agg(i::text, ',') FROM generate_series(1, 1000000000) AS g(i)",
        "SELECT repeat('x', 1000000000)",
        "SELECT repeat(repeat('x', 10000), 10000)",
        "SELECT lpad('x', 1000000000, 'y')",
        "SELECT format('%1000000000s', 'x')",
        (
            "SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' ~"
            " '^((((a+)+)+)+)+\\1$' FROM numbers a, numbers b, numbers c"
        ),
        "SELECT 9.0 ^ 9999999",
        "SELECT factorial(100000)",
        (
            "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE levenshtein(a.n::text,"
            " b.n::text) > c.n"
        ),
        (
            "SELECT jsonb_agg(jsonb_build_object('a', a.n, 'b', b.n)) FROM numbers a, numbers b,"
            " numbers c"
        ),
        "SELECT array_agg(a.n ORDER BY b.n * c.n) FROM numbers a, numbers b, numbers c",
        "SELECT count(DISTINCT a.n::text || b.n || c.n) FROM numbers a, numbers b, numbers c",
        "SELECT generate_series('1970-01-01'::timestamp, '9970-01-01', '1 microsecond')",
        (
            "SELECT xx.n FROM numbers n1, LATERAL (SELECT n2.n FROM numbers n2, numbers n3, numbers"
            " n4 WHERE n2.n * n3.n * n4.n > n1.n) AS xx"
        ),
        (
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a.n * b.n * c.n) FROM numbers a,"
            " numbers b, numbers c"
        ),
    ],
    "mysql": [
        "SELECT COUNT(*) FROM numbers a, numbers b, numbers c, numbers d",
        "SELECT REPEAT('x', 100000000)",
        "SELECT GROUP_CONCAT(REPEAT('x', 100000)) FROM numbers a, numbers b",
        "SELECT a.n FROM numbers a, numbers b, numbers c ORDER BY a.n * b.n * c.n",
        "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT MAX(x) FROM t",
        "SELECT COUNT(DISTINCT CONCAT(a.n, b.n, c.n)) FROM numbers a, numbers b, numbers c",
        "SELECT COUNT(*) FROM numbers a, numbers b, numbers c WHERE CONCAT(a.n, b.n) REGEXP '^(1|2|3)*(4|5)*$' AND c.n < 0",
        "SELECT LPAD('x', 100000000, 'y')",
        "SELECT JSON_ARRAYAGG(REPEAT('x', 10000)) FROM numbers a, numbers b",
    ],
    "clickhouse": CLICKHOUSE_SECOND_STOP,
}

RUN = {
    "all": [
        "SELECT 1 AS one",
        "SELECT name FROM people; --",
        "SELECT name, city FROM staff ORDER BY name DESC LIMIT 1",
        "SELECT city, count(*) AS n FROM people GROUP BY city HAVING count(*) > 0 ORDER BY n DESC",
        "SELECT p.name, b.name AS boss FROM people p LEFT JOIN people b ON b.id = p.boss_id",
        "SELECT name FROM people WHERE city IS NULL OR city LIKE 'B%'",
        (
            "SELECT CASE WHEN salary > 65 THEN 'high' ELSE 'low' END AS band, count(*) FROM people"
            " GROUP BY 1"
        ),
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT"
            " sum(n) FROM t"
        ),
        "SELECT avg(salary) AS mean, max(salary) - min(salary) AS spread FROM people",
        "SELECT name, rank() OVER (ORDER BY salary DESC) AS place FROM people",
        "SELECT name FROM people WHERE salary > (SELECT avg(salary) FROM people)",
        "SELECT 名称 FROM 客户 WHERE 城市 = '上海'",
        'SELECT "group", "select" FROM "order"',
        (
            "SELECT s.name, b.colour FROM staff s LEFT JOIN badge b ON b.staff_id = s.id ORDER BY"
            " s.name"
        ),
        "SELECT s.city, count(*) AS n FROM staff s JOIN pay p ON p.staff_id = s.id GROUP BY s.city",
        "SELECT 'DROP TABLE people; --' AS text",
        "SELECT name /* the name */ FROM people -- all of them",
        "SELECT created, deleted_at, updates FROM audit",
        "SELECT count(email) AS known FROM staff",
        "SELECT name FROM staff WHERE email = 'canary.one@example.com'",
        "SELECT coalesce(city, 'unknown') AS town FROM people UNION SELECT city FROM staff",
    ],
    "sqlite": [
        "SELECT name FROM people INDEXED BY sqlite_autoindex_vault_1",
        "SELECT strftime('%Y', created) AS year FROM audit",
        # SQLite sees later expressions, too
        "WITH v AS (SELECT * FROM vault), vault AS (SELECT 1 AS n) SELECT * FROM v",
        "SELECT group_concat(name, ', ') FROM people",
        "SELECT json_extract('{\"a\": 1}', '$.a')",
        "SELECT total(n), iif(1, 2, 3) FROM numbers",
    ],
    "duckdb": [
        "SHOW TABLES",
        "SUMMARIZE people",
        "DESCRIBE people",
        "DESCRIBE SELECT name FROM people",
        "SELECT date_trunc('month', created) FROM audit",
        "SELECT list(name ORDER BY name) FROM people",
        "SELECT * EXCLUDE (salary) FROM people",
        "SELECT city, count(*) FROM people GROUP BY ALL ORDER BY ALL",
        "SELECT part.kind, tags[1], weights['x'] FROM nested",
        "FROM people SELECT name WHERE id = 1",
        "SELECT name FROM people QUALIFY row_number() OVER (PARTITION BY city ORDER BY id) = 1",
        "SELECT i FROM range(10) AS r(i) WHERE i % 2 = 0",
    ],
    "postgres": [
        # No backtracking, no harm.
        "SELECT regexp_replace(repeat('a', 9999) || 'b', '(a*)*(a*)*(a*)*c', 'x')",
        "SELECT date_trunc('month', created) FROM audit",
        "SELECT string_agg(name, ', ' ORDER BY name) FROM people",
        "SELECT doc ->> 'kind', tags[1] FROM nested",
        "SELECT DISTINCT ON (city) city, name FROM people ORDER BY city, salary DESC",
        "SELECT count(*) FILTER (WHERE salary > 60) FROM people",
        "SELECT d::date FROM generate_series('2024-01-01'::date, '2024-01-05', '1 day') AS d",
        'SELECT "FirstName" FROM "Mixed"',
        (
            "SELECT p.name, x.top FROM people p CROSS JOIN LATERAL (SELECT max(salary) AS top FROM"
            " people q WHERE q.city = p.city) AS x"
        ),
    ],
    "mysql": [
        "SELECT GROUP_CONCAT(name ORDER BY name SEPARATOR ', ') FROM people",
        "SELECT DATE_FORMAT(created, '%Y-%m') AS month FROM audit",
        "SELECT doc->>'$.kind' FROM nested",
        "SELECT `group` FROM `order`",
        "SELECT name FROM people WHERE name REGEXP '^A'",
        "SELECT IFNULL(city, '?') AS c, COUNT(*) FROM people GROUP BY c",
        "SELECT name, RANK() OVER (ORDER BY salary DESC) AS r FROM people",
    ],
    "clickhouse": CLICKHOUSE_RUN,
}

NOT_MYSQL = {
    r"SELECT name FROM people WHERE name = 'x\'; DROP TABLE people; --'": "one text",
    (
        "WITH RECURSIVE f(a, b) AS (SELECT 1.0, 1.0 UNION ALL SELECT b, a + b FROM f) SELECT"
        " max(a) FROM f"
    ): "fails, for the first row decides the width",
    (
        "WITH RECURSIVE f(s) AS (SELECT CAST('xxxxxxxxxx' AS TEXT) UNION ALL SELECT s || s FROM"
        " f) SELECT max(length(s)) FROM f"
    ): "fails, for || is OR",
}
"""Texts of "all" that mean something else there."""
UNLIKE = {
    "mysql": NOT_MYSQL,
    "clickhouse": {
        r"SELECT name FROM people WHERE name = 'x\'; DROP TABLE people; --'": "one text",
    },
}
