"""SQL texts of our own, hostile and legal, over the schema in `databases.py`; policy: everything
but `vault` can be read.
"""

from tests.tools.sql.sql_texts_clickhouse import (
    CLICKHOUSE_ALLOWED,
    CLICKHOUSE_REFUSED,
    CLICKHOUSE_STOPPED,
)
from tests.tools.sql.sql_texts_mysql import MYSQL_ALLOWED, MYSQL_REFUSED, MYSQL_STOPPED
from tests.tools.sql.sql_texts_postgres import POSTGRES_ALLOWED, POSTGRES_REFUSED, POSTGRES_STOPPED

BOTH_REFUSED = [
    # not one SELECT
    "DELETE FROM people",
    "UPDATE people SET name = 'x'",
    "INSERT INTO people (id) SELECT id FROM people",
    "WITH gone AS (SELECT 1) DELETE FROM people",
    "CREATE VIEW v AS SELECT 1",
    "DROP TABLE people",
    "ALTER TABLE people ADD COLUMN x INTEGER",
    "SELECT 1; SELECT 2",
    "SELECT 1; ; DELETE FROM people",
    "SELECT 1;;DROP TABLE people;",
    "/*/* nested */ SELECT */ DELETE FROM people",
    "SELECT 1 /* open",
    "-- SELECT 1\nDELETE FROM people",
    "EXPLAIN SELECT * FROM people",
    "EXPLAIN QUERY PLAN SELECT * FROM vault",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "VACUUM INTO '/tmp/longtable-copy.db'",
    "ATTACH '/tmp/longtable-other.db' AS o",
    "DETACH main",
    "PRAGMA table_info(vault)",
    "ANALYZE",
    "SELECT * INTO copy FROM people",
    "",
    "   ",
    ";",
    "hello there, please show the people",
    "SELECT \x00 1",
    # a table that is denied, or is not one of the database's
    "SELECT * FROM vault",
    "SELECT * FROM VaUlT",
    'SELECT * FROM "vault"',
    'SELECT * FROM "VAULT"',
    "SELECT * FROM main.vault",
    'SELECT * FROM "main"."vault"',
    "SELECT v.* FROM people p, vault v",
    "SELECT 1 FROM people p JOIN vault v ON v.id = p.id",
    "SELECT (SELECT max(secret) FROM vault)",
    "SELECT name FROM people WHERE id IN (SELECT id FROM vault)",
    "SELECT name FROM people ORDER BY (SELECT secret FROM vault LIMIT 1)",
    "SELECT count(*) FROM people GROUP BY (SELECT secret FROM vault)",
    "SELECT count(*) FROM people HAVING EXISTS (SELECT 1 FROM vault)",
    "SELECT name FROM people LIMIT (SELECT count(*) FROM vault)",
    "SELECT id FROM people UNION SELECT secret FROM vault",
    "SELECT id FROM people EXCEPT SELECT id FROM vault",
    "SELECT id FROM people INTERSECT SELECT id FROM vault",
    "VALUES ((SELECT secret FROM vault))",
    "SELECT sum(id) OVER (ORDER BY (SELECT secret FROM vault)) FROM people",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM vault) THEN 1 END",
    "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM vault)) FROM people",
    "WITH vault AS (SELECT * FROM vault) SELECT * FROM vault",
    "WITH RECURSIVE vault AS (SELECT * FROM vault) SELECT * FROM vault",
    (
        "WITH RECURSIVE vault AS (SELECT * FROM vault UNION ALL SELECT * FROM vault WHERE 1 = 0)"
        " SELECT * FROM vault"
    ),
    "WITH people AS (SELECT * FROM vault) SELECT * FROM people",
    "WITH a AS (WITH vault AS (SELECT 1 AS x) SELECT * FROM vault) SELECT * FROM vault",
    "SELECT * FROM (WITH vault AS (SELECT 1 AS x) SELECT * FROM vault) AS s, vault",
    "WITH \u017fault AS (SELECT 1), vault2 AS (SELECT * FROM vault) SELECT * FROM vault2",
    "WITH a AS (SELECT * FROM main.vault), vault AS (SELECT 1) SELECT * FROM a",
    "SELECT * FROM through_view",
    "SELECT * FROM through_two_views",
    "SELECT * FROM sqlite_master",
    "SELECT sql FROM main.sqlite_schema",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM temp.people",
    "SELECT * FROM other.people",
    "SELECT * FROM other.main.people",
    "SELECT * FROM 'people.csv'",
    "SELECT * FROM '/etc/passwd'",
    # functions that reach out
    "SELECT load_extension('evil')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'y')",
    "SELECT getenv('HOME')",
    "SELECT current_setting('threads')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT pg_sleep(60)",
    "SELECT no_such_function(1)",
    "SELECT ?",
    "SELECT :name",
    "SELECT $1",
    "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
    "SELECT " + "1 + " * 30_000 + "1",
]

REFUSED = {
    "sqlite": [
        "SELECT * FROM [vault]",
        "SELECT * FROM `vault`",
        "SELECT * FROM pragma_table_info('vault')",
        "SELECT * FROM pragma_table_list",
        "SELECT name FROM pragma_database_list()",
        "SELECT * FROM pragma_function_list",
        "SELECT p.* FROM people, pragma_table_info(people.name) AS p",
        "SELECT * FROM sqlite_temp_master",
        "SELECT * FROM sqlite_sequence",
        "SELECT * FROM sqlite_stmt",
        "SELECT * FROM dbstat",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = DELETE",
        "ATTACH DATABASE 'file:x.db?mode=rwc' AS x",
        "REPLACE INTO people (id) VALUES (1)",
        "INSERT INTO people (id) VALUES (99) RETURNING id",
        "CREATE TEMP VIEW people AS SELECT * FROM vault",
        "SELECT zeroblob(1000000000)",
        "SELECT randomblob(1000000000)",
        "SELECT sqlite_compileoption_get(1)",
        "SELECT last_insert_rowid()",
        "SELECT 1 FROM people NOT INDEXED INDEXED BY x; DELETE FROM people",
    ],
    "duckdb": [
        "FROM vault",
        "TABLE vault",
        "FROM vault SELECT secret",
        "SELECT * FROM (FROM vault)",
        "SELECT EXISTS(FROM vault)",
        "PIVOT vault ON id USING first(secret)",
        "UNPIVOT vault ON id INTO NAME n VALUE v",
        "SELECT * FROM vault PIVOT (count(*) FOR id IN (1, 2))",
        "SELECT * FROM (PIVOT vault ON id USING first(secret))",
        "SUMMARIZE vault",
        "DESCRIBE vault",
        "SELECT * FROM (DESCRIBE vault)",
        "SELECT * FROM (SUMMARIZE vault)",
        "SELECT * FROM (SHOW TABLES)",
        "SELECT * FROM people, LATERAL (SELECT secret FROM vault) AS s",
        "SELECT * FROM people POSITIONAL JOIN vault",
        "SELECT * FROM people ASOF JOIN vault ON people.id >= vault.id",
        "SELECT * FROM people SEMI JOIN vault USING (id)",
        (
            "SELECT name FROM people QUALIFY row_number() OVER (ORDER BY (SELECT secret FROM"
            " vault)) = 1"
        ),
        "SELECT [s FOR s IN (SELECT list(secret) FROM vault)]",
        "SELECT list_transform([1], lambda x: (SELECT secret FROM vault LIMIT 1))",
        "SELECT ARRAY(SELECT secret FROM vault)",
        "SELECT id FROM people UNION BY NAME SELECT id FROM vault",
        (
            "WITH RECURSIVE vault(id) USING KEY (id) AS (SELECT id FROM vault UNION SELECT 1)"
            " SELECT * FROM vault"
        ),
        "SELECT * FROM query('SELECT * FROM vault')",
        "SELECT * FROM query_table('vault')",
        "SELECT * FROM query_table(['vault'])",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM vault'))",
        "SELECT json_serialize_sql('SELECT 1')",
        "SELECT json_serialize_plan('SELECT * FROM vault')",
        "SELECT * FROM duckdb_tables()",
        "SELECT * FROM duckdb_columns",
        "SELECT * FROM duckdb_views()",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pragma_table_info('vault')",
        "SELECT * FROM pragma_storage_info('vault')",
        "SELECT stats(secret) FROM people, (SELECT 1 AS secret)",
        "SELECT * FROM seq_scan('vault')",
        "SELECT * FROM summary((SELECT 1))",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_csv_auto('/etc/passwd')",
        "SELECT * FROM read_parquet('x.parquet')",
        "SELECT * FROM parquet_scan('x.parquet')",
        "SELECT * FROM read_json('x.json')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM \"read_blob\"('/etc/passwd')",
        "SELECT * FROM system.main.read_blob('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('x.csv')",
        "SELECT * FROM 'https://example.org/x.parquet'",
        'SELECT * FROM "people.parquet"',
        "SELECT ('HOME').getenv()",
        "SELECT getvariable('x')",
        "SELECT nextval('s')",
        "SELECT setseed(0.5)",
        "SELECT sleep_ms(60000)",
        "SELECT write_log('x')",
        "SELECT * FROM enable_logging()",
        "CALL pragma_version()",
        "CALL enable_logging()",
        "EXPORT DATABASE '/tmp/longtable-out'",
        "COPY people TO '/tmp/longtable-out.csv'",
        "COPY (SELECT * FROM vault) TO '/tmp/longtable-out.csv'",
        "COPY FROM DATABASE memory TO x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SET VARIABLE x = (SELECT secret FROM vault)",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "USE memory",
        "CREATE MACRO m() AS TABLE SELECT * FROM vault",
        "SELECT * FROM memory.main.x",
        "SELECT our_macro()",
        "SELECT shout('x')",
        "MERGE INTO people USING vault ON people.id = vault.id WHEN MATCHED THEN DELETE",
        "CHECKPOINT",
        # a value of any size out of nothing
        "SELECT repeat('x', 4000000000)",
        "SELECT repeat(repeat('x', 10000), 10000)",
        "WITH a AS (SELECT repeat('x', 10000) AS s) SELECT repeat(s, 10000) FROM a",
        "SELECT length(lpad('x', 2000000000, 'ab'))",
        "SELECT len(range(2000000000))",
        "SELECT unnest(generate_series(1, 1000000000000))",
        "SELECT len(list_resize([1], 2000000000))",
        "SELECT bitstring('1', 4000000000)",
        "SELECT length(printf('%2000000000d', 1))",
        "SELECT length(format('{:2000000000}', 1))",
        "SELECT length(format('{:{}}', 1, 2000000000))",
        "SELECT length(printf('%*d', 2000000000, 1))",
        "SELECT printf(name, 1) FROM people",
        "SELECT len(range(n)) FROM (SELECT 2000000000 AS n)",
        "SELECT length(repeat('x', n)) FROM (SELECT 2000000000 AS n)",
        "SELECT repeat('x', (random() * 1000000000)::INTEGER)",
        (
            "SELECT generate_series(TIMESTAMP '1900-01-01', TIMESTAMP '2100-01-01', INTERVAL 1"
            " MICROSECOND)"
        ),
    ],
    "postgres": POSTGRES_REFUSED,
    "mysql": MYSQL_REFUSED,
    "clickhouse": CLICKHOUSE_REFUSED,
}

STOPPED = {
    "sqlite": [
        "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
        (
            "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t WHERE"
            " x < 0"
        ),
        (
            "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) SELECT"
            " max(length(s)) FROM t"
        ),
        "SELECT length(hex(hex(hex(hex(hex(printf('%100000d', 1)))))))",
        "SELECT length(replace(printf('%10000d', 1), ' ', printf('%10000d', 1)))",
        "SELECT length(group_concat(a.n || b.n || c.n)) FROM numbers a, numbers b, numbers c",
        "SELECT a.n FROM numbers a, numbers b, numbers c",
        "SELECT printf('%90000d', n) FROM numbers",
    ],
    "duckdb": [
        "SELECT count(*) FROM range(300000) a, range(300000) b WHERE (a.range * b.range) % 11 = 5",
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
        (
            "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) SELECT"
            " max(length(s)) FROM t"
        ),
        "SELECT * FROM range(2000000)",
        "SELECT count(*) FROM generate_series(1, 100000000000)",
        "SELECT a.range FROM range(100000) a, range(100000) b ORDER BY a.range * b.range",
        "SELECT string_agg(repeat('x', 10000), '') FROM range(1000000)",
        "SELECT list(a.range) FROM range(100000) a, range(100000) b",
        (
            "SELECT count(*) FROM (SELECT DISTINCT a.range * 100000 + b.range FROM range(100000) a,"
            " range(100000) b)"
        ),
        "SELECT repeat('x', 10000) FROM range(5000)",
    ],
    "postgres": POSTGRES_STOPPED,
    "mysql": MYSQL_STOPPED,
    "clickhouse": CLICKHOUSE_STOPPED,
}

BOTH_ALLOWED = [
    "SELECT 1",
    "SELECT 1;",
    "SELECT 1; -- the end",
    "  select\n\t1  ",
    "SELECT 'DROP TABLE people; --' AS text",
    "SELECT 'it''s' AS text",
    "SELECT /* a comment; DELETE FROM people */ name FROM people -- and another",
    "SELECT replace(name, 'a', 'b') FROM people",
    "SELECT upper(name), lower(name), length(name), trim(name), substr(name, 1, 2) FROM people",
    'SELECT "group", "select", "from" FROM "order"',
    'SELECT o."table" FROM "order" AS o',
    "SELECT count(*), sum(salary), avg(salary), min(salary), max(salary) FROM people",
    "SELECT count(DISTINCT city) FROM people",
    (
        "SELECT city, count(*) AS n FROM people GROUP BY city HAVING count(*) > 0 ORDER BY n DESC,"
        " city LIMIT 3 OFFSET 0"
    ),
    "SELECT p.name, b.name FROM people p LEFT JOIN people b ON b.id = p.boss_id",
    "SELECT * FROM people NATURAL JOIN (SELECT 1 AS id)",
    "SELECT * FROM people CROSS JOIN (SELECT 1 AS one)",
    (
        "SELECT name FROM people WHERE city IN ('Bern', 'Genf') AND salary BETWEEN 1 AND 999999 AND"
        " name LIKE '%a%' AND boss_id IS NULL"
    ),
    "SELECT name FROM people WHERE NOT EXISTS (SELECT 1 FROM people q WHERE q.boss_id = people.id)",
    "SELECT CASE WHEN salary > 10 THEN 'high' ELSE 'low' END AS level FROM people",
    "SELECT coalesce(city, 'none'), nullif(city, 'Bern'), ifnull(city, '') FROM people",
    "SELECT CAST(salary AS INTEGER), round(CAST(salary AS NUMERIC) / 3.0, 2), abs(-1) FROM people",
    "WITH a AS (SELECT id FROM people), b AS (SELECT id FROM a) SELECT count(*) FROM b",
    "WITH a(x) AS (SELECT id FROM people) SELECT x FROM a",
    (
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 10) SELECT sum(x)"
        " FROM t"
    ),
    (
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 10) SELECT"
        " count(*) FROM t"
    ),
    (
        "WITH RECURSIVE chain(id, depth) AS (SELECT id, 0 FROM people WHERE boss_id IS NULL UNION"
        " ALL SELECT p.id, c.depth + 1 FROM people p JOIN chain c ON p.boss_id = c.id) SELECT"
        " max(depth) FROM chain"
    ),
    "WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b) SELECT x FROM a",
    "WITH vault AS (SELECT 1 AS x) SELECT x FROM vault",
    "WITH vault AS (SELECT 1 AS x), later AS (SELECT x FROM VAULT) SELECT x FROM later",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v",
    "SELECT id FROM people UNION ALL SELECT id FROM people",
    "SELECT id FROM people INTERSECT SELECT boss_id FROM people",
    "SELECT id FROM people EXCEPT SELECT boss_id FROM people",
    "SELECT name, row_number() OVER (PARTITION BY city ORDER BY salary DESC) AS r FROM people",
    (
        "SELECT name, sum(salary) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM"
        " people"
    ),
    (
        "SELECT name, lag(salary, 1, 0) OVER w, first_value(name) OVER w FROM people WINDOW w AS"
        " (ORDER BY id)"
    ),
    (
        "SELECT rank() OVER (ORDER BY salary), dense_rank() OVER (ORDER BY salary), ntile(2) OVER"
        " (ORDER BY id) FROM people"
    ),
    "SELECT sum(salary) FILTER (WHERE city = 'Bern') FROM people",
    "SELECT vault.name FROM people AS vault",
    "SELECT name AS vault FROM people",
    "SELECT 'vault' AS vault",
    "SELECT deleted_at, created, updates FROM audit",
    "SELECT * FROM bosses",
    'SELECT "Order ID" FROM "Order Details"',
    "SELECT 名称 FROM 客户 WHERE 城市 = '上海'",
    "SELECT name FROM people WHERE name = 'Zoë'",
    "SELECT 1e3, 1.5, -2, NULL, TRUE, 'x' || 'y', 7 % 3, 7 / 2",
    "SELECT json_extract('{\"a\": [1, 2]}', '$.a[1]')",
    "SELECT date('2024-01-31'), CURRENT_DATE",
    "SELECT group_concat(name, ', ') FROM people",
    "SELECT (SELECT max(salary) FROM people) - salary FROM people",
    "SELECT name FROM people ORDER BY salary DESC NULLS LAST",
    "SELECT DISTINCT city FROM people",
    "SELECT (1, 2) = (1, 2)",
    "SELECT name FROM people WHERE (city, id) IN (SELECT city, id FROM people)",
]

ALLOWED = {
    "sqlite": [
        "SELECT main.people.name FROM main.people",
        (
            "SELECT strftime('%Y', created), julianday(created), datetime(created, '+1 day') FROM"
            " audit"
        ),
        "SELECT [name], `city` FROM [people]",
        "SELECT printf('%.2f', salary), char(65, 66), iif(id > 1, 'a', 'b') FROM people",
        "SELECT name FROM people WHERE name GLOB 'A*'",
        "SELECT value, key FROM json_each('[1, 2, 3]')",
        "SELECT p.name, j.value FROM people p, json_each('[1]') AS j",
        "SELECT rowid, total(salary), max(1, 2), typeof(salary) FROM people",
        "SELECT name COLLATE NOCASE FROM people ORDER BY 1 COLLATE NOCASE",
        "SELECT x'00ff', 1 IS NOT 2, 5 & 3, 1 << 4, ~1",
        "WITH a AS (SELECT * FROM b), b AS (SELECT 1 AS x) SELECT x FROM a",
        "SELECT '{\"a\":1}' -> '$.a', '{\"a\":1}' ->> 'a'",
        "SELECT total_price FROM generated",
        "SELECT * FROM keyed",
    ],
    "duckdb": [
        "SHOW ALL TABLES",
        "SUMMARIZE people",
        "SELECT main.people.name FROM main.people",
        "FROM people",
        "FROM people SELECT name WHERE id > 1",
        "SELECT * EXCLUDE (salary) REPLACE (upper(name) AS name) FROM people",
        "SELECT COLUMNS('na.*') FROM people",
        "SELECT city, count(*) FROM people GROUP BY ALL ORDER BY ALL",
        "SELECT name FROM people QUALIFY row_number() OVER (PARTITION BY city ORDER BY id) = 1",
        "SELECT DISTINCT ON (city) city, name FROM people ORDER BY city, id",
        "SELECT * FROM people USING SAMPLE 3 ROWS",
        "SELECT * FROM people TABLESAMPLE 50%",
        "SELECT id::VARCHAR, TRY_CAST(name AS INTEGER), salary::DECIMAL(10, 2) FROM people",
        (
            "SELECT date_trunc('month', created), extract(year FROM created), year(created),"
            " strftime(created, '%Y-%m') FROM audit"
        ),
        (
            "SELECT created + INTERVAL 3 DAY, date_diff('day', created, DATE '2024-01-01'), DATE"
            " '2024-01-01' FROM audit"
        ),
        "SELECT now(), today(), current_timestamp",
        (
            "SELECT list_transform([1, 2], lambda x: x + 1), [x * 2 FOR x IN [1, 2] IF x > 1],"
            " {'a': 1}.a, MAP {'k': 1}"
        ),
        "SELECT unnest([1, 2]), unnest(range(3))",
        "SELECT i FROM range(5) AS t(i)",
        "SELECT * FROM generate_series(1, 10, 3)",
        "SELECT unnest(generate_series(DATE '2024-01-01', DATE '2024-03-01', INTERVAL 1 MONTH))",
        "SELECT repeat('*', 3), lpad(name, 10, '.'), rpad(name, 10, '.') FROM people",
        "SELECT repeat('#', id), bar(salary, 0, 100, 20) FROM people",
        "SELECT unnest(range(1, id + 1)) FROM people",
        "SELECT printf('%05d', id), format('{:>8}', name) FROM people",
        (
            "SELECT name FROM people WHERE name ILIKE 'a%' OR name SIMILAR TO 'A.*' OR"
            " regexp_matches(name, '^A')"
        ),
        (
            "SELECT median(salary), quantile_cont(salary, 0.9), stddev(salary), mode(city),"
            " arg_max(name, salary) FROM people"
        ),
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) FROM people",
        "SELECT string_agg(name, ', ' ORDER BY name), list(name), histogram(city) FROM people",
        "SELECT city, grouping(city), count(*) FROM people GROUP BY ROLLUP (city)",
        "SELECT city, count(*) FROM people GROUP BY GROUPING SETS ((city), ())",
        "SELECT p.name, x.n FROM people p, LATERAL (SELECT p.id + 1 AS n) AS x",
        "SELECT * FROM people p SEMI JOIN people q ON p.id = q.boss_id",
        "SELECT * FROM people PIVOT (count(*) FOR city IN ('Bern', 'Genf'))",
        "SELECT id FROM people UNION BY NAME SELECT name FROM people",
        "SELECT 'a'.upper(), 'abc'[1:2], [1, 2, 3][1]",
        "SELECT part.kind, tags[1] FROM nested",
        "SELECT * FROM json_each('[1, 2]')",
        "SELECT '{\"a\": 1}'::JSON ->> 'a'",
        "WITH t AS MATERIALIZED (SELECT 1 AS x) SELECT x FROM t",
        "SELECT name FROM people ORDER BY salary LIMIT 50%",
        "SELECT TIMESTAMP '2024-01-01 00:00:00' AT TIME ZONE 'UTC'",
        "SELECT 7 // 2, 2 ** 3, 5 & 3",
        "SELECT id FROM people FETCH FIRST 2 ROWS ONLY",
        "SELECT amount FROM sales.items",
    ],
    "postgres": POSTGRES_ALLOWED,
    "mysql": MYSQL_ALLOWED,
    "clickhouse": CLICKHOUSE_ALLOWED,
}
