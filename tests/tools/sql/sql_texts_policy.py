"""SQL texts over the schema in `test_policy.py`: `staff.salary`, `badge.code`, `pay.salary` are
denied, `email` is masked.
"""

from tests.tools.sql.sql_texts_clickhouse import (
    CLICKHOUSE_DENIED,
    CLICKHOUSE_HARMLESS,
    CLICKHOUSE_MASKED,
    CLICKHOUSE_MASKED_OPEN,
    CLICKHOUSE_SHOWN_WHOLE,
    CLICKHOUSE_SPELLED_OUT,
)

DENIED = {
    "all": [
        "SELECT salary FROM staff",
        "SELECT * FROM staff",
        "SELECT staff.* FROM staff",
        "SELECT s.* FROM staff AS s",
        "SELECT * FROM (SELECT * FROM staff) AS t",
        "SELECT t.salary FROM (SELECT * FROM staff) AS t",
        "WITH t AS (SELECT * FROM staff) SELECT salary FROM t",
        "WITH staff AS (SELECT * FROM staff) SELECT * FROM staff",
        "WITH RECURSIVE staff AS (SELECT * FROM staff) SELECT * FROM staff",
        "WITH t(a, b, c, d, e, f) AS (SELECT * FROM staff) SELECT d FROM t",
        (
            "WITH a AS (WITH staff AS (SELECT 1 AS salary) SELECT * FROM staff) SELECT salary FROM"
            " staff"
        ),
        "SELECT x.d FROM staff AS x(a, b, c, d, e, f)",
        "SELECT name FROM staff WHERE salary > 7000000",
        "SELECT name, (SELECT max(salary) FROM staff) FROM staff",
        "SELECT (SELECT s.salary) FROM staff s",
        "SELECT * FROM staff NATURAL JOIN pay",
        "SELECT * FROM staff JOIN pay USING (salary)",
        "SELECT * FROM staff a CROSS JOIN staff b",
        "SELECT max(salary) FROM staff GROUP BY city",
        "SELECT name FROM staff GROUP BY name HAVING max(salary) > 1",
        "SELECT sum(salary) OVER (ORDER BY id) FROM staff",
        "SELECT salary AS id FROM staff UNION SELECT id FROM badge",
        "SELECT id FROM badge UNION ALL SELECT salary FROM staff",
        "SELECT * FROM badge",
        "SELECT code FROM badge",
        "SELECT * FROM pay",
        "SELECT p.salary FROM pay p",
        "SELECT * FROM everything",
        "SELECT amount FROM paid",
        "SELECT * FROM over_paid",
        "SELECT CAST(salary AS TEXT) || 'x' FROM staff",
        'SELECT "salary" FROM staff',
        'SELECT "SALARY" FROM staff',
        "SELECT SaLaRy FROM STAFF",
        "SELECT s.salary FROM staff s JOIN LATERAL (SELECT s.salary) AS l ON true",
        "SELECT name FROM staff ORDER BY salary",
        "SELECT name FROM staff ORDER BY 1, (SELECT max(salary) FROM staff)",
        "SELECT CASE WHEN salary > 1 THEN salary END FROM staff",
        "SELECT coalesce(NULL, salary) FROM staff",
        "SELECT s.salary FROM (staff s JOIN badge b ON b.staff_id = s.id)",
        "SELECT salary FROM (SELECT id, name FROM staff) AS t",
        "SELECT * FROM staff s LEFT JOIN (SELECT * FROM staff) AS t ON t.salary = s.salary",
        "SELECT * FROM clean NATURAL JOIN staff",
        "VALUES ((SELECT max(salary) FROM staff))",
        "SELECT EXISTS (SELECT salary FROM staff), (SELECT salary FROM staff LIMIT 1)",
    ],
    "sqlite": [
        "SELECT rowid FROM badge",
        "SELECT _rowid_, oid FROM badge",
        "SELECT badge.rowid FROM badge",
        "SELECT main.staff.salary FROM main.staff",
        "SELECT [salary] FROM staff",
        "SELECT `salary` FROM staff",
        "SELECT json_group_array(salary) FROM staff",
        "SELECT json_object('x', s.salary) FROM staff s",
        "SELECT value FROM staff, json_each(json_array(salary))",
        "SELECT * FROM staff INDEXED BY nothing",
        "SELECT s.'salary' FROM staff s",
        "SELECT max(rowid) FROM badge",
        "SELECT colour FROM badge WHERE rowid > 7000000",
    ],
    "duckdb": [
        "FROM staff",
        "FROM staff SELECT salary",
        "SELECT s FROM staff s",
        "SELECT staff FROM staff",
        "SELECT COLUMNS('sal.*') FROM staff",
        "SELECT COLUMNS(*) FROM staff",
        "SELECT max(COLUMNS(*)) FROM staff",
        "SELECT COLUMNS(c -> c LIKE 's%') FROM staff",
        "SELECT * EXCLUDE (name) FROM staff",
        "SELECT * REPLACE (salary AS name) FROM staff",
        "SELECT * LIKE 's%' FROM staff",
        "SELECT to_json(s) FROM staff s",
        "SELECT struct_extract(s, 'salary') FROM staff s",
        "SELECT (s).salary FROM staff s",
        "SELECT s['salary'] FROM staff s",
        "SELECT unnest(s) FROM staff s",
        "SELECT list(s) FROM staff s",
        "SELECT any_value(s) FROM staff s",
        "SELECT staff_book.main.staff.salary FROM staff_book.main.staff",
        "SELECT main.staff.salary FROM main.staff",
        "SELECT arg_max(name, salary) FROM staff",
        "PIVOT staff ON city USING sum(salary)",
        "UNPIVOT staff ON salary INTO NAME n VALUE v",
        "SELECT * FROM (UNPIVOT (SELECT id, salary FROM staff) ON salary)",
        "SELECT * FROM (PIVOT staff ON city USING max(id))",
        "SUMMARIZE staff",
        "SELECT * FROM (SUMMARIZE staff)",
        "DESCRIBE staff",
        "SELECT * FROM staff POSITIONAL JOIN pay",
        "SELECT * FROM staff ASOF JOIN pay ON staff.id >= pay.staff_id",
        "SELECT x.salary FROM staff x UNION ALL BY NAME SELECT 1 AS salary",
        "SELECT rowid, * FROM staff",
        "SELECT list_transform([s], x -> x.salary) FROM staff s",
        "SELECT * FROM staff USING SAMPLE 100%",
        "SELECT [salary for x in [1]] FROM staff",
        "SELECT hash(s) AS h, s FROM staff s GROUP BY ALL",
        "SELECT row_to_json(s) FROM staff s",
        "SELECT DISTINCT ON (city) * FROM staff",
        "SELECT max_by(s, id) FROM staff s",
    ],
    "postgres": [
        "SELECT s FROM staff s",
        "SELECT staff FROM staff",
        "SELECT staff::text FROM staff",
        "SELECT row_to_json(s) FROM staff s",
        "SELECT to_jsonb(s) ->> 'salary' FROM staff s",
        "SELECT to_json(staff.*) FROM staff",
        "SELECT json_agg(s) FROM staff s",
        "SELECT array_agg(s)::text FROM staff s",
        "SELECT (s).salary FROM staff s",
        "SELECT (s).* FROM staff s",
        "SELECT (ROW(s.*)).f4 FROM staff s",
        "SELECT count(s), max(s::text) FROM staff s",
        "SELECT (SELECT t FROM staff t LIMIT 1)::text",
        "SELECT l.* FROM staff s, LATERAL (SELECT s.*) AS l",
        "SELECT l.salary FROM staff s CROSS JOIN LATERAL (SELECT s.*) AS l",
        "SELECT jsonb_each(to_jsonb(s)) FROM staff s",
        "SELECT k, v FROM staff s, jsonb_each_text(to_jsonb(s)) AS e(k, v)",
        "SELECT public.staff.salary FROM public.staff",
        "SELECT * FROM ONLY staff",
        "SELECT * FROM staff TABLESAMPLE SYSTEM (100)",
        "TABLE staff",
        "SELECT unnest(ARRAY[salary]) FROM staff",
        "SELECT * FROM ROWS FROM (unnest(ARRAY(SELECT salary FROM staff))) AS t(x)",
        "SELECT salary(staff) FROM staff",
        "SELECT string_agg(salary::text, ',') FROM staff",
        "SELECT concat(s) FROM staff s",
        "SELECT format('%s', s) FROM staff s",
        "SELECT s IS NOT DISTINCT FROM s, s FROM staff s",
        "SELECT CAST(s.name AS integer) FROM staff s",
        "SELECT hashtext(s::text), s FROM staff s",
        "SELECT DISTINCT ON (salary) name FROM staff",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) FROM staff",
        "SELECT jsonb_path_query(to_jsonb(s), '$.salary') FROM staff s",
        "SELECT x.a FROM (SELECT s FROM staff s) AS q(x), LATERAL (SELECT (q.x).salary AS a) AS x",
        'SELECT U&"s\\0061lary" FROM staff',
    ],
    "mysql": [
        "SELECT `salary` FROM `staff`",
        "SELECT s.`SALARY` FROM staff s",
        "SELECT staff_book.staff.salary FROM staff_book.staff",
        "SELECT JSON_ARRAYAGG(salary) FROM staff",
        "SELECT JSON_OBJECT('x', s.salary) FROM staff s",
        "SELECT GROUP_CONCAT(salary) FROM staff",
        "SELECT * FROM JSON_TABLE((SELECT JSON_ARRAYAGG(salary) FROM staff), '$[*]' COLUMNS (x INT PATH '$')) AS j",
        "SELECT j.x FROM staff, JSON_TABLE(JSON_ARRAY(staff.salary), '$[*]' COLUMNS (x INT PATH '$')) AS j",
        "TABLE staff",
        "SELECT IF(salary > 1, salary, 0) FROM staff",
        "SELECT IFNULL(NULL, salary) FROM staff",
        "SELECT * FROM staff PROCEDURE ANALYSE()",
        "SELECT CONCAT(salary, '') FROM staff",
        "SELECT * FROM staff STRAIGHT_JOIN pay",
        "SELECT * FROM staff s LEFT JOIN pay p USING (salary)",
        "SELECT (SELECT salary FROM staff LIMIT 1) + 0",
        "SELECT name FROM staff ORDER BY salary + 0",
        "SELECT salary FROM staff UNION SELECT 1",
        "SELECT CAST(salary AS CHAR) FROM staff",
        "SELECT * FROM staff PARTITION (p0)",
        "SELECT COUNT(DISTINCT salary, id) FROM staff",
        "SELECT MAX(salary) FROM staff GROUP BY city WITH ROLLUP",
        "SELECT BINARY salary FROM staff",
        "SELECT name FROM staff WHERE MATCH (salary) AGAINST ('7650417')",
        "SELECT /*! salary, */ name FROM staff",
        "SELECT name /*!50000 , salary */ FROM staff",
        "SELECT name FROM staff HAVING salary > 1",
        "SELECT code FROM badge WHERE code REGEXP '^7'",
        "SELECT LEFT(salary, 3) FROM staff",
        "SELECT `staff`.`salary` + 0e0 FROM `staff`",
        "SELECT @s := salary FROM staff",
        "SELECT salary INTO @s FROM staff LIMIT 1",
        "SELECT DEFAULT(salary) FROM staff",
        "SELECT VALUES(salary) FROM staff",
    ],
    "clickhouse": CLICKHOUSE_DENIED,
}

HARMLESS = {
    "all": [
        "SELECT * FROM staff ORDER BY name",
        "SELECT s.*, b.colour FROM staff s JOIN badge b ON b.staff_id = s.id",
        "SELECT count(*) FROM staff",
        "SELECT city, count(*) AS n FROM staff GROUP BY city ORDER BY n DESC, city",
        "SELECT name FROM staff WHERE id IN (SELECT boss_id FROM staff)",
        "WITH staff AS (SELECT 1 AS one) SELECT one FROM staff",
        "SELECT a.name, b.name FROM staff a LEFT JOIN staff b ON b.id = a.boss_id",
        "SELECT staff.name FROM staff, badge WHERE staff.id = badge.staff_id",
        "SELECT (SELECT max(b.colour) FROM badge b WHERE b.staff_id = s.id) FROM staff s",
        "SELECT * FROM clean",
        "SELECT * FROM over_clean",
        "SELECT name, row_number() OVER (PARTITION BY city ORDER BY id) FROM staff",
        "SELECT name FROM staff UNION SELECT colour FROM badge",
        "SELECT staff_id FROM pay",
        (
            "WITH RECURSIVE up(id, name) AS (SELECT id, name FROM staff WHERE boss_id IS NULL UNION"
            " ALL SELECT s.id, s.name FROM staff s JOIN up ON s.boss_id = up.id) SELECT * FROM up"
        ),
    ],
    "sqlite": [
        "SELECT main.staff.name FROM main.staff",
        "SELECT name FROM (staff JOIN badge ON staff_id = staff.id)",
    ],
    "duckdb": [
        "FROM staff",
        "SELECT p FROM pay p",
        "SELECT main.staff.name FROM main.staff",
        "SELECT * EXCLUDE (city) FROM staff",
        "SELECT COLUMNS('c.*') FROM badge",
        "SELECT name FROM staff USING SAMPLE 100%",
    ],
    "postgres": [
        "SELECT p FROM pay p",
        "SELECT row_to_json(b) FROM badge b",
        "SELECT public.staff.name FROM public.staff",
        "SELECT name FROM ONLY staff",
        "SELECT name FROM staff TABLESAMPLE SYSTEM (100)",
        "SELECT l.name FROM staff s CROSS JOIN LATERAL (SELECT s.*) AS l",
    ],
    "mysql": [
        "SELECT `name` FROM `staff`",
        "SELECT name FROM staff s LEFT JOIN badge b ON b.staff_id = s.id ORDER BY b.colour DESC",
        "SELECT CONCAT(name, ' in ', city) AS n FROM staff",
        "SELECT GROUP_CONCAT(colour) FROM badge",
        "SELECT JSON_ARRAYAGG(name) FROM staff",
        "SELECT city, COUNT(*) FROM staff GROUP BY city WITH ROLLUP",
        "SELECT * FROM staff LIMIT 0, 1",
    ],
    "clickhouse": CLICKHOUSE_HARMLESS,
}

MASKED = {
    "all": [
        "SELECT email FROM staff",
        "SELECT * FROM staff",
        "SELECT s.* FROM staff s",
        "SELECT name, s.* FROM staff s",
        "SELECT s.*, name FROM staff s",
        "SELECT upper(email) AS city FROM staff",
        "SELECT substr(email, 1, 10) FROM staff",
        "SELECT max(email) FROM staff",
        "SELECT email || name AS name FROM staff",
        "SELECT e AS f FROM (SELECT email AS e FROM staff) AS t",
        "WITH t(a, b, c, d, e) AS (SELECT * FROM staff) SELECT * FROM t",
        "WITH t(a, b, c, d, e) AS (SELECT * FROM staff) SELECT d AS name FROM t",
        "SELECT x.d FROM (SELECT * FROM staff) AS x(a, b, c, d, e)",
        "SELECT name FROM staff UNION SELECT email FROM staff",
        "SELECT q FROM (SELECT name AS q FROM staff UNION ALL SELECT email FROM staff) AS t",
        (
            "SELECT n FROM (SELECT city AS n, id FROM staff UNION ALL SELECT email, id FROM staff)"
            " AS t"
        ),
        "SELECT (SELECT max(t.email) FROM staff t) AS name",
        "SELECT CASE WHEN id = 1 THEN email ELSE 'x' END AS y FROM staff",
        "SELECT reached_at FROM contacts",
        "SELECT * FROM contacts",
        "SELECT r FROM over_contacts",
        "SELECT email, count(*) FROM staff GROUP BY email",
        "SELECT coalesce(email, '') AS a, name AS b FROM staff",
        "SELECT min(email) OVER (ORDER BY id) AS w, id FROM staff",
        'SELECT "email" AS "Name" FROM staff',
        "SELECT a.name, b.email FROM staff a JOIN staff b ON a.id = b.id",
        "VALUES ((SELECT max(email) FROM staff))",
        (
            "WITH RECURSIVE up(id, name) AS (SELECT id, email FROM staff WHERE boss_id IS NULL"
            " UNION ALL SELECT s.id, s.email FROM staff s JOIN up ON s.boss_id = up.id) SELECT name"
            " FROM up"
        ),
        "SELECT CAST(email AS INTEGER) FROM staff",
        (
            "SELECT id FROM staff WHERE CAST(email AS INTEGER) = 1 UNION SELECT CAST(email AS"
            " INTEGER) FROM staff"
        ),
        "SELECT * FROM staff a, staff b",
        "SELECT t.* FROM (SELECT email AS x, id AS y FROM staff) AS t",
        "SELECT replace(email, '@', '#') AS id FROM staff",
        "SELECT 1 + length(email) AS city FROM staff",
    ],
    "sqlite": [
        'SELECT "max(email)" FROM (SELECT max(email) FROM staff)',
        "SELECT value FROM staff, json_each(json_array(email))",
        "SELECT column1 FROM (VALUES ((SELECT email FROM staff)))",
        "SELECT group_concat(email) FROM staff",
        "SELECT json_object('a', email) FROM staff",
        "SELECT s.'email' FROM staff s",
    ],
    "duckdb": [
        'SELECT "max(email)" FROM (SELECT max(email) FROM staff)',
        "SELECT s FROM staff s",
        "SELECT to_json(s) FROM staff s",
        "SELECT COLUMNS('em.*') FROM staff",
        "SELECT max(COLUMNS(*)) FROM staff",
        "SELECT * REPLACE (email AS name) FROM staff",
        "SELECT * RENAME (email AS x) FROM staff",
        "SELECT unnest({'a': email}, recursive := true) FROM staff",
        "SELECT x.* FROM (SELECT {'a': email} AS x FROM staff)",
        "SELECT x.a FROM (SELECT {'a': email} AS x FROM staff)",
        "SELECT a FROM (SELECT x.a FROM (SELECT {'a': email} AS x FROM staff))",
        "SELECT email AS e, e || '!' AS f FROM staff",
        "SELECT list(email) FROM staff",
        "SELECT list_transform([email], x -> x || '!') AS l FROM staff",
        "UNPIVOT (SELECT id, email FROM staff) ON email INTO NAME n VALUE v",
        "SELECT v FROM (UNPIVOT (SELECT id, email FROM staff) ON email INTO NAME n VALUE v)",
        "SELECT 1 AS a UNION ALL BY NAME SELECT email AS b FROM staff",
        "FROM staff",
        "SELECT (SELECT s FROM staff s LIMIT 1).email AS x",
        "SELECT column0 FROM (VALUES ((SELECT max(email) FROM staff)))",
        "SELECT CAST(email AS DATE) FROM staff",
        "SELECT error(email) FROM staff",
        "SELECT map([email], [1]) FROM staff",
        "FROM (FROM staff)",
        "SELECT row(s) FROM staff s",
        "SELECT {'a': s} AS name FROM staff s",
        "SELECT struct_pack(a := s) FROM staff s",
        "SELECT list(s) AS name FROM staff s",
        "SELECT unnest(s, recursive := true) FROM staff s",
        "SELECT struct_values(s) FROM staff s",
        "SELECT arg_max(s, id) AS name FROM staff s",
        "SELECT s::VARCHAR AS name FROM staff s",
        "SELECT s['email'] AS name FROM staff s",
        "SELECT * EXCLUDE (id) FROM staff",
        "SELECT * LIKE 'em%' FROM staff",
        "SELECT concat(*COLUMNS('em.*')) AS name FROM staff",
        "SELECT COLUMNS('(e)(m).*') AS '\\2\\1' FROM staff",
        "SELECT * FROM staff UNPIVOT (v FOR k IN (name, email))",
        "PIVOT staff ON id USING max(email)",
        "SELECT * FROM staff USING SAMPLE 100%",
        "SELECT DISTINCT ON (id) email FROM staff",
        "SELECT email AS a, a AS name2, name2 AS z FROM staff",
        "SELECT email, count(*) FROM staff GROUP BY ALL ORDER BY ALL",
        "SELECT l.* FROM staff s, LATERAL (SELECT s AS x) AS l",
        "SELECT x.email FROM (SELECT s AS x FROM staff s)",
        "SELECT * FROM staff POSITIONAL JOIN numbers",
        "SELECT n FROM (SELECT 'x' AS n UNION ALL BY NAME SELECT email AS n FROM staff)",
    ],
    "postgres": [
        "SELECT s FROM staff s",
        "SELECT to_jsonb(s) ->> 'email' AS x FROM staff s",
        "SELECT row_to_json(s) AS j FROM staff s",
        "SELECT e.value FROM staff s, jsonb_each_text(to_jsonb(s)) AS e(key, value)",
        "SELECT max FROM (SELECT max(email) FROM staff) AS t",
        "SELECT email::text AS name FROM staff",
        "SELECT string_agg(email, ',') FROM staff",
        "SELECT l.x FROM staff s, LATERAL (SELECT s.email AS x) AS l",
        "SELECT u FROM staff, unnest(ARRAY[email]) AS u",
        "SELECT (s).email AS n FROM staff s",
        "SELECT email::date FROM staff",
        "SELECT repeat('x', 20000 + length(email)) AS id FROM staff",
        "SELECT column1 FROM (VALUES ((SELECT max(email) FROM staff))) AS t",
        "SELECT (ROW(email)).f1 FROM staff",
        "SELECT array_agg(s) FROM staff s",
        "SELECT (s.*)::text AS name FROM staff s",
        "SELECT (array_agg(s))[1] AS name FROM staff s",
        "SELECT x::text AS name FROM (SELECT email FROM staff) AS x",
        "SELECT q.f4 FROM staff AS q(f1, f2, f3, f4)",
        "SELECT (SELECT s) AS name FROM staff s",
        "SELECT coalesce(s, s) AS name FROM staff s",
        "SELECT concat_ws(',', s.*) AS name FROM staff s",
        "TABLE staff",
    ],
    "mysql": [
        "SELECT `email` FROM staff",
        "SELECT CONCAT(email, name) AS n FROM staff",
        "SELECT CONCAT_WS(',', email) FROM staff",
        "SELECT GROUP_CONCAT(email) FROM staff",
        "SELECT JSON_OBJECT('a', email) FROM staff",
        "SELECT JSON_ARRAYAGG(email) FROM staff",
        "SELECT j.x FROM staff, JSON_TABLE(JSON_ARRAY(staff.email), '$[*]' COLUMNS (x TEXT PATH '$')) AS j",
        "SELECT LEFT(email, 10) FROM staff",
        "SELECT MID(email, 1, 10) AS name FROM staff",
        "SELECT SUBSTRING_INDEX(email, '@', 1) FROM staff",
        "SELECT IF(1, email, '') FROM staff",
        "SELECT IFNULL(email, '') FROM staff",
        "SELECT HEX(email) FROM staff",
        "SELECT BINARY email AS name FROM staff",
        "SELECT CAST(email AS BINARY) AS id FROM staff",
        "SELECT CONVERT(email USING latin1) AS id FROM staff",
        "SELECT email COLLATE utf8mb4_bin AS id FROM staff",
        "SELECT ANY_VALUE(email) FROM staff",
        "SELECT EXTRACTVALUE(1, CONCAT('~', email)) FROM staff",
        "SELECT UPDATEXML(1, CONCAT('~', email), 1) FROM staff",
        "SELECT STR_TO_DATE(email, '%Y') FROM staff",
        "SELECT email, COUNT(*) FROM staff GROUP BY email WITH ROLLUP",
        "SELECT COUNT(*) FROM staff GROUP BY email, FLOOR(RAND(0) * 2)",
        "SELECT COUNT(*), CONCAT(email, FLOOR(RAND(0) * 2)) AS x FROM staff GROUP BY x",
        "SELECT email + 0 FROM staff",
        "SELECT -email FROM staff",
        "SELECT email DIV 1 FROM staff",
        "SELECT email FROM staff ORDER BY email LIMIT 1",
        "SELECT ELT(1, email) FROM staff",
        "SELECT MAKE_SET(1, email) FROM staff",
        "SELECT TO_BASE64(email) FROM staff",
        "SELECT COMPRESS(email) FROM staff",
        "SELECT AES_ENCRYPT(email, 'k') FROM staff",
        "SELECT REGEXP_SUBSTR(email, '.*') FROM staff",
        "SELECT (email, name) = ('x', 'y') FROM staff",
        "SELECT * FROM staff NATURAL LEFT JOIN badge",
        "SELECT FIRST_VALUE(email) OVER (ORDER BY id) FROM staff",
    ],
    "clickhouse": CLICKHOUSE_MASKED,
}
"""No value of `email` may be in what a model is shown."""

MASKED_OPEN = {
    "all": [
        "SELECT name FROM staff WHERE email = 'canary.one@example.com'",
        (
            "SELECT name FROM staff WHERE email IN ('canary.one@example.com', 'x') AND NOT (email ="
            " 'y' OR email IS NULL)"
        ),
        "SELECT name FROM staff WHERE id IN (SELECT id FROM staff WHERE email <> 'x')",
        (
            "WITH t AS (SELECT email AS e, name FROM staff) SELECT name FROM t WHERE e ="
            " 'canary.one@example.com'"
        ),
        "SELECT name FROM staff ORDER BY email",
        "SELECT count(*) AS n FROM staff GROUP BY email HAVING count(email) > 0",
        "SELECT count(email) AS n, count(DISTINCT email) AS m FROM staff",
        "SELECT count(*) FROM staff WHERE email IS NOT NULL",
        "SELECT city, count(*) FROM staff GROUP BY city",
        "SELECT name, kind FROM contacts",
        "SELECT a.name FROM staff a JOIN staff b ON a.email = b.email",
        "WITH t AS (SELECT email, name FROM staff) SELECT name FROM t",
        "SELECT colour FROM badge",
        "SELECT name FROM over_contacts",
        "SELECT name FROM staff WHERE email IN (SELECT b.email FROM staff b WHERE b.id < 3)",
        (
            "SELECT s.name FROM staff s WHERE EXISTS (SELECT 1 FROM staff b WHERE b.email = s.email"
            " AND b.id <> s.id) OR s.id = 1"
        ),
        "SELECT s.name FROM staff s WHERE NOT EXISTS (SELECT b.email FROM staff b WHERE b.id > 5)",
        "SELECT name, row_number() OVER (PARTITION BY email ORDER BY id) AS n FROM staff",
        "SELECT name, rank() OVER (ORDER BY email DESC) AS place FROM staff",
        "SELECT city, count(DISTINCT email) AS n FROM staff GROUP BY city ORDER BY n DESC",
        "SELECT name FROM staff GROUP BY name, email ORDER BY count(email), email",
        (
            "SELECT a.name FROM staff a JOIN (SELECT email AS e, id FROM staff) AS b ON a.email ="
            " b.e AND a.id = b.id"
        ),
        "SELECT a.id FROM staff a JOIN (SELECT email FROM staff) AS b USING (email)",
        "SELECT a.id FROM staff a NATURAL JOIN (SELECT email, id FROM staff) AS b",
        "WITH t AS (SELECT DISTINCT email AS e FROM staff) SELECT count(*) AS n FROM t",
        (
            "SELECT s.name FROM staff s JOIN (SELECT upper(name) AS name, staff_id FROM clean,"
            " badge) AS c ON c.staff_id = s.id"
        ),
        "SELECT name FROM staff WHERE (email = 'canary.one@example.com') OR NOT (email <> 'x')",
        "SELECT count(*) FILTER (WHERE email IS NULL) AS n FROM staff",
        "SELECT city, sum(CASE WHEN city = 'Bern' THEN 1 ELSE 0 END) AS n FROM staff GROUP BY city",
        "SELECT upper(reached) AS big FROM (SELECT name AS reached FROM contacts) AS t",
        "SELECT email.colour FROM staff s JOIN badge email ON email.staff_id = s.id",
        (
            "SELECT staff.name FROM staff WHERE id IN (SELECT staff_id FROM badge WHERE"
            " upper(colour) LIKE 'R%')"
        ),
    ],
    "sqlite": [],
    "duckdb": [
        "SELECT name FROM staff QUALIFY row_number() OVER (ORDER BY email) = 1",
        "SELECT DISTINCT ON (email) name FROM staff",
        "SELECT a.id FROM staff a SEMI JOIN staff b ON a.email = b.email",
    ],
    "postgres": ["SELECT DISTINCT ON (email) name FROM staff ORDER BY email, id"],
    "mysql": [
        "SELECT name FROM staff WHERE `email` = 'canary.one@example.com'",
        "SELECT COUNT(DISTINCT email) AS n FROM staff",
        "SELECT IF(city = 'Bern', 1, 0) AS b FROM staff",
    ],
    "clickhouse": CLICKHOUSE_MASKED_OPEN,
}
"""What can be asked of a masked column without its values being shown."""

SHOWN_WHOLE = {
    "all": [
        (
            "SELECT s.name || ' <' || s.email || '>' AS who, count(b.colour) AS n FROM staff s LEFT"
            " JOIN badge b ON b.staff_id = s.id GROUP BY s.id, s.name, s.email ORDER BY n DESC,"
            " s.id LIMIT 10"
        ),
        (
            "SELECT upper(email), lower(trim(email)), coalesce(email, 'none'), CAST(email AS TEXT)"
            " FROM staff"
        ),
        "SELECT min(email), max(email), max(lower(email)) FROM staff",
        (
            "SELECT city, max(email) AS last, count(*) AS n FROM staff GROUP BY city ORDER BY n"
            " DESC, 3, city"
        ),
        "SELECT email FROM staff UNION ALL SELECT email FROM staff",
        "SELECT name, email FROM staff UNION ALL SELECT 'none', NULL",
        "SELECT email || '; ' || name FROM staff ORDER BY email",
        "SELECT (SELECT s.email) AS e, s.name FROM staff s ORDER BY e",
        (
            "WITH t AS (SELECT id, email AS e FROM staff) SELECT upper(e) AS f FROM t WHERE e IS"
            " NOT NULL ORDER BY e, id"
        ),
    ],
    "sqlite": ["SELECT group_concat(email, '; ') FROM staff"],
    "duckdb": [
        "SELECT string_agg(email, ', ' ORDER BY email) FROM staff",
        "SELECT concat(name, ' ', email) AS x, email FROM staff",
    ],
    "postgres": [
        (
            "SELECT string_agg(DISTINCT email, ', ' ORDER BY email) FILTER (WHERE email <> 'x')"
            " FROM staff"
        ),
        "SELECT concat_ws(', ', name, email) FROM staff",
    ],
    "mysql": [
        "SELECT CONCAT(name, ' <', email, '>') AS who FROM staff ORDER BY id",
        "SELECT GROUP_CONCAT(email ORDER BY email SEPARATOR '; ') FROM staff",
        "SELECT UPPER(email), LOWER(email), COALESCE(email, 'none'), CAST(email AS CHAR) FROM staff",
        "SELECT IFNULL(email, '?') FROM staff",
    ],
    "clickhouse": CLICKHOUSE_SHOWN_WHOLE,
}
"""These run; a person has the values, a model •••."""

SPELLED_OUT = {
    "all": [
        (
            "SELECT n.n, p.n FROM staff, numbers n, numbers p WHERE unicode(substr(email, p.n, 1))"
            " = n.n"
        ),
        "SELECT name FROM staff WHERE email LIKE 'c%'",
        # The limit of a result's size tells how long a masked value is: no length may depend on its
        # characters.
        "SELECT ltrim(email, 'abc') FROM staff",
        "SELECT trim(email, 'abc') || name FROM staff",
        "SELECT max(coalesce(s.email, 'm')) FROM numbers LEFT JOIN staff s ON s.id = n",
        (
            "SELECT min(upper(coalesce(s.email, 'm'))) OVER () FROM numbers LEFT JOIN staff s ON"
            " s.id = n"
        ),
        "SELECT name FROM staff WHERE email > 'd'",
        "SELECT name FROM staff WHERE email BETWEEN 'a' AND 'd'",
        "SELECT name FROM staff WHERE length(email) = 5",
        "SELECT name FROM staff WHERE email = name || '@example.com'",
        "SELECT x.g FROM staff JOIN (SELECT name AS g FROM staff) AS x ON x.g = staff.email",
        (
            "SELECT x.other FROM staff s JOIN (SELECT name AS email, city AS other FROM staff) AS x"
            " ON x.email = s.email"
        ),
        (
            "SELECT x.other FROM staff s JOIN (SELECT name AS email, city AS other FROM staff) AS x"
            " USING (email)"
        ),
        (
            "SELECT x.other FROM staff s NATURAL JOIN (SELECT name AS email, city AS other FROM"
            " staff) AS x"
        ),
        "SELECT name FROM staff WHERE CASE WHEN email = 'x' THEN 1 ELSE 0 END = 1",
        "SELECT name FROM staff WHERE (SELECT max(email) FROM staff) > 'c'",
        "SELECT name FROM staff GROUP BY name HAVING min(email) < 'd'",
        "SELECT name FROM staff ORDER BY substr(email, 3, 1)",
        "SELECT n FROM numbers LIMIT (SELECT length(email) FROM staff LIMIT 1)",
        (
            "WITH t AS (SELECT length(email) AS size FROM staff) SELECT n FROM numbers, t WHERE n"
            " <= size"
        ),
        (
            "SELECT n.n, p.n, count(CASE WHEN n.n <= length(s.email) THEN 1 END) FROM staff s,"
            " numbers n, numbers p GROUP BY 1, 2"
        ),
        "SELECT sum(CASE WHEN email < 'd' THEN 1 ELSE 0 END) FROM staff",
        "SELECT count(CASE WHEN email = 'x' THEN 1 END) FROM staff",
        "SELECT email = 'x' AS hit FROM staff",
        "SELECT email FROM staff INTERSECT SELECT name FROM staff",
        "SELECT email FROM staff EXCEPT SELECT 'canary.one@example.com'",
        "SELECT email FROM staff UNION SELECT 'd'",
        "SELECT name FROM staff UNION SELECT email FROM staff",
        "SELECT email AS e, 0 AS mine FROM staff UNION ALL SELECT 'd', 1 ORDER BY e",
        (
            "SELECT mine FROM (SELECT email AS e, 0 AS mine FROM staff UNION ALL SELECT 'd', 1) AS"
            " t ORDER BY e"
        ),
        "SELECT upper(email) AS e FROM staff UNION ALL SELECT 'D' ORDER BY 1",
        "SELECT count(*) FROM staff GROUP BY substr(email, 1, 1)",
        "SELECT substr(email, 1, 1) AS x, count(*) FROM staff GROUP BY x",
        "SELECT upper(email) AS x, count(*) FROM staff GROUP BY x",
        "SELECT upper(email), count(*) FROM staff GROUP BY 1",
        "SELECT lower(email) AS e, name FROM staff ORDER BY e",
        "SELECT name, lower(email) FROM staff ORDER BY 2",
        "SELECT s.*, lower(email) AS e FROM staff s ORDER BY 6",
        "SELECT name, lower(email) AS e FROM staff ORDER BY upper(e)",
        "SELECT DISTINCT coalesce(email, 'x') FROM staff",
        "SELECT DISTINCT upper(email) FROM staff",
        "SELECT max(e) FROM (SELECT max(email) AS e FROM staff) AS t",
        "SELECT s.name FROM staff s JOIN (SELECT max(email) AS e FROM staff) AS m ON m.e = s.email",
        "SELECT name FROM staff WHERE email = (SELECT max(email) FROM staff)",
        "SELECT name FROM staff WHERE email = (SELECT name FROM staff WHERE id = 1)",
        "SELECT name FROM staff WHERE email IN (SELECT 'canary.' || name FROM staff)",
        "SELECT name FROM staff WHERE name IN (SELECT email FROM staff)",
        "SELECT n.n FROM numbers n JOIN staff s ON s.email = n.n",
        "SELECT name FROM staff WHERE (email, id) = ('x', 1)",
        "SELECT name FROM staff WHERE (email, id) < ('d', 1)",
        "SELECT name FROM staff WHERE NOT (email = 'x' AND email >= 'd')",
        "SELECT name FROM staff WHERE (email = 'x') = (id = 1)",
        "SELECT name FROM staff WHERE nullif(email, 'x') IS NULL",
        "SELECT name FROM staff WHERE CAST(email AS INTEGER) = 1",
        "SELECT name FROM staff WHERE email = 'x' || name",
        f"SELECT name FROM staff WHERE email IN ({', '.join(map(repr, map(str, range(21))))})",
        "SELECT name FROM staff WHERE email = 'a'" + " OR email = 'b'" * 20,
        "SELECT lead(name) OVER (ORDER BY email || name) FROM staff",
        "SELECT sum(id) OVER (ORDER BY email) FROM staff",
        "SELECT lag(email) OVER (ORDER BY id) = email FROM staff",
        "SELECT first_value(name) OVER (PARTITION BY substr(email, 1, 1) ORDER BY id) FROM staff",
        (
            "SELECT s.name FROM staff s WHERE EXISTS (SELECT 1 FROM numbers n WHERE n.n <"
            " length(s.email))"
        ),
        "SELECT (SELECT count(*) FROM numbers n WHERE n.n < length(s.email)) FROM staff s",
        "SELECT (SELECT count(*) FROM numbers WHERE n < length(email)) FROM staff",
        "SELECT (SELECT name AS email FROM clean WHERE email > 'd' LIMIT 1) FROM staff",
        (
            "SELECT (SELECT count(*) FROM numbers n JOIN numbers m ON email > 'd' JOIN (SELECT 'x'"
            " AS email) AS q ON 1 = 1) FROM staff"
        ),
        (
            "SELECT (SELECT count(*) FROM numbers n JOIN numbers m ON upper(email) = 'X' JOIN"
            " (SELECT 'x' AS email) AS q ON 1 = 1) FROM staff"
        ),
        "SELECT a.email FROM staff a JOIN (SELECT 'x' AS email) AS b USING (email)",
        "SELECT a.id FROM staff a JOIN (SELECT name AS e FROM staff) AS b ON b.e = a.email",
        "WITH t AS (SELECT email AS e FROM staff) SELECT e > 'd' FROM t",
        "WITH t(a) AS (SELECT email FROM staff) SELECT count(*) FROM t WHERE a LIKE 'c%'",
        (
            "WITH RECURSIVE r(n, e) AS (SELECT 1, email FROM staff UNION ALL SELECT n + 1,"
            " substr(e, 2) FROM r WHERE n < 5) SELECT n FROM r"
        ),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, staff s WHERE n <"
            " length(s.email)) SELECT n FROM r"
        ),
        "SELECT reached_at > 'd' FROM contacts",
        "SELECT name FROM over_contacts WHERE r LIKE 'c%'",
        "SELECT name FROM contacts ORDER BY upper(reached_at)",
        "SELECT name FROM staff GROUP BY name HAVING max(email) = 'x'",
        "SELECT count(*) FILTER (WHERE email > 'd') FROM staff",
        "SELECT max(name) FILTER (WHERE length(email) = 3) FROM staff",
        "SELECT name FROM staff LIMIT (SELECT count(*) FROM staff WHERE email > 'd')",
        "SELECT name FROM staff s ORDER BY (SELECT s.email)",
        "SELECT name FROM staff ORDER BY CASE WHEN email < 'd' THEN 1 ELSE 2 END",
        "SELECT name FROM staff ORDER BY email = 'x'",
        "SELECT max(CASE WHEN email < 'd' THEN id END) FROM staff",
        "SELECT count(email > 'd') FROM staff",
        "SELECT count(DISTINCT substr(email, 1, 1)) FROM staff",
        "SELECT count(*) FROM staff a, staff b WHERE a.email < b.email",
        "SELECT count(*) FROM staff a JOIN staff b ON a.email = upper(b.email)",
        "SELECT count(*) FROM staff a JOIN staff b ON lower(a.email) = lower(b.email)",
        "SELECT n FROM numbers WHERE n <= (SELECT length(email) FROM staff LIMIT 1)",
    ],
    "sqlite": [
        "SELECT 1 FROM staff, json_each('[' || replace(hex(email), '4', '4,') || ']')",
        (
            "SELECT count(CASE WHEN n.n <= unicode(substr(s.email, 1, 1)) THEN 1 END) FROM staff s,"
            " numbers n"
        ),
        "SELECT name FROM staff WHERE email GLOB 'c*'",
        "SELECT name FROM staff ORDER BY email COLLATE NOCASE",
        "SELECT name, email FROM staff ORDER BY 2 COLLATE NOCASE",
        "SELECT lower(email), name FROM staff ORDER BY (1)",
        "SELECT s.'email' > 'd' FROM staff s",
        "SELECT typeof(email + 0) FROM staff",
        "SELECT a.email > 'd' FROM (staff a JOIN numbers n ON n.n = a.id) AS j",
        "SELECT min(email, 'd') = 'd' FROM staff",
        "SELECT name FROM staff WHERE iif(email < 'd', 1, 0)",
        "SELECT email || printf('%.*c', 900, 'x') FROM staff",
    ],
    "duckdb": [
        "SELECT 1 FROM staff, unnest(range(length(email)))",
        "SELECT unnest(range(length(email))) FROM staff",
        "SELECT name FROM staff WHERE email = 5",
        "SELECT name FROM staff, (SELECT ['x', 'y'] AS l) AS q WHERE email IN q.l",
        "SELECT name FROM staff WHERE email = TRUE",
        "SELECT name FROM staff WHERE email = DATE '2020-01-01'",
        "SELECT email FROM staff UNION ALL SELECT '{}'::JSON",
        "SELECT email FROM staff UNION ALL BY NAME SELECT 'x' AS email",
        "SELECT CASE WHEN email < 'd' THEN error('x') ELSE 1 END FROM staff",
        "SELECT name FROM staff WHERE CASE WHEN email < 'd' THEN error('x') ELSE true END",
        "SELECT DISTINCT ON (substr(email, 1, 1)) name FROM staff",
        "SELECT lower(email) AS e, count(*) FROM staff GROUP BY ALL",
        "SELECT lower(email) AS e FROM staff ORDER BY ALL",
        "SELECT email AS e, e > 'd' AS x FROM staff",
        "SELECT upper(email) AS e, e || 'x' AS f FROM staff",
        "SELECT arg_max(name, email) FROM staff",
        "SELECT quantile_disc(0.5) WITHIN GROUP (ORDER BY email) FROM staff",
        "SELECT mode(email) FROM staff",
        "SELECT list(name ORDER BY upper(email)) FROM staff",
        "SELECT count(*) FROM (SELECT email AS e FROM staff) AS t WHERE e[1] = 'c'",
        "SELECT name FROM staff ASOF JOIN (SELECT 'd' AS p) AS q ON email >= q.p",
        "SELECT name FROM staff WHERE email ILIKE 'c%'",
        "SELECT name FROM staff WHERE email SIMILAR TO 'c.*'",
        "SELECT hash(email) FROM staff",
        "SELECT email_1 > 'd' FROM (SELECT a.email, b.email, 1 AS email_1 FROM staff a, staff b)",
        "SELECT [x < 'd' for x in [email]] FROM staff",
        (
            "SELECT (SELECT count(*) FROM unnest(['a', 'b']) AS email WHERE email = s.email) FROM"
            " staff s"
        ),
        "SELECT j.email > 'd' FROM ((staff s JOIN numbers n ON n.n = s.id)) AS j",
        "SELECT count(COLUMNS(*)) FROM staff",
        "SELECT max(length(COLUMNS('em.*'))) FROM staff",
        "SELECT * FROM (SUMMARIZE staff)",
        "SELECT * FROM staff PIVOT (count(*) FOR email IN ('a'))",
        "SELECT id, #4 FROM staff",
        "SELECT #4 AS name FROM staff",
        "SELECT upper(#4) AS name FROM staff",
        "SELECT name FROM staff ORDER BY #4",
        "SELECT * FROM (SELECT #4 FROM staff)",
        "WITH q AS (SELECT #4 AS name FROM staff) FROM q",
        "SELECT (SELECT #1 FROM staff LIMIT 1)",
    ],
    "postgres": [
        "SELECT name FROM staff s WHERE s > ROW(1, 'a', 'b', 'd', 1)",
        "SELECT count(s) FROM staff s",
        (
            "SELECT (SELECT count(*) FROM unnest(ARRAY['a', 'b']) AS email WHERE email = s.email)"
            " FROM staff s"
        ),
        "SELECT j.email > 'd' FROM ((staff s JOIN numbers n ON n.n = s.id)) AS j",
        "SELECT s.text FROM staff s",
        "SELECT s.to_json FROM staff s",
        "SELECT s.pg_column_size FROM (SELECT email FROM staff) AS s",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY email) FROM staff",
        "SELECT mode() WITHIN GROUP (ORDER BY email) FROM staff",
        (
            "SELECT sum(id) OVER (ORDER BY email RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            " FROM staff"
        ),
        "SELECT name FROM staff WHERE email = ANY (ARRAY['a', 'b'])",
        'SELECT name FROM staff ORDER BY email COLLATE "C"',
        "SELECT width_bucket(email, ARRAY['a', 'd']) FROM staff",
        "SELECT l.x FROM staff s, LATERAL (SELECT s.email > 'd' AS x) AS l",
        "SELECT l.x FROM staff s, LATERAL (SELECT length(s.email)) AS l(x)",
        "SELECT array_agg(name ORDER BY upper(email)) FROM staff",
        "SELECT grouping(email) FROM staff GROUP BY GROUPING SETS ((upper(email)), ())",
        (
            "SELECT (SELECT min(n) FROM generate_series(1, 200) AS email(n) WHERE n >"
            " ascii(s.email)) FROM staff s"
        ),
        (
            "SELECT (SELECT count(*) FROM generate_series(1, 3) AS email WHERE email ="
            " s.email::int) FROM staff s"
        ),
        "SELECT (SELECT count(*) FROM (SELECT 1 AS \"Email\") AS q WHERE email > 'd') FROM staff",
        "SELECT generate_series(1, length(email)) FROM staff",
        "SELECT 1 FROM staff, generate_series(1, length(email))",
        "SELECT name FROM staff WHERE email ~ '^c'",
        "SELECT name FROM staff WHERE (staff).email < 'd'",
        "SELECT name FROM staff s WHERE to_jsonb(s) ->> 'email' < 'd'",
    ],
    "mysql": [
        "SELECT name FROM staff WHERE email REGEXP '^c'",
        "SELECT name FROM staff WHERE email RLIKE '^c'",
        "SELECT name FROM staff WHERE LEFT(email, 1) = 'c'",
        "SELECT name FROM staff WHERE email = 0",
        "SELECT name FROM staff WHERE email IN (0, 1)",
        "SELECT name FROM staff WHERE email + 0 = 0",
        "SELECT name FROM staff WHERE ASCII(email) > 99",
        "SELECT name FROM staff WHERE ORD(email) > 99",
        "SELECT name FROM staff ORDER BY email COLLATE utf8mb4_bin",
        "SELECT name FROM staff WHERE email COLLATE utf8mb4_bin = 'x'",
        "SELECT name FROM staff WHERE BINARY email = 'x'",
        "SELECT name FROM staff WHERE email LIKE BINARY 'c%'",
        "SELECT STRCMP(email, 'd') FROM staff",
        "SELECT LOCATE('c', email) FROM staff",
        "SELECT FIELD(email, 'x') FROM staff",
        "SELECT FIND_IN_SET(email, 'a,b') FROM staff",
        "SELECT CRC32(email) FROM staff",
        "SELECT LENGTH(email), BIT_LENGTH(email) FROM staff",
        "SELECT name FROM staff WHERE email SOUNDS LIKE 'x'",
        "SELECT name FROM staff WHERE MATCH (email) AGAINST ('canary')",
        "SELECT name FROM staff WHERE email XOR 1",
        "SELECT name FROM staff WHERE email && 1",
        "SELECT name FROM staff WHERE NOT email",
        "SELECT name FROM staff WHERE email",
        "SELECT name FROM staff WHERE email <=> 'x' OR email < 'd'",
        "SELECT name FROM staff HAVING MAX(email) > 'd'",
        "SELECT COUNT(*) FROM staff GROUP BY LEFT(email, 1)",
        "SELECT GREATEST(email, 'd') = 'd' FROM staff",
        "SELECT IF(email < 'd', 1, 0) FROM staff",
        "SELECT INTERVAL(email, 'd') FROM staff",
        "SELECT CASE email WHEN 'x' THEN SLEEP(1) END FROM staff",
        "SELECT GROUP_CONCAT(name ORDER BY LEFT(email, 1)) FROM staff",
        "SELECT REPEAT('x', LENGTH(email)) FROM staff",
        "SELECT BIT_COUNT(email) FROM staff",
        "SELECT name FROM staff WHERE email = DATE '2020-01-01'",
        "SELECT name FROM staff WHERE email = TRUE",
        "SELECT name FROM staff WHERE email BETWEEN 'a' AND 'd'",
        "SELECT JSON_VALID(email) FROM staff",
        "SELECT JSON_SEARCH(JSON_ARRAY(email), 'one', 'c%') FROM staff",
        "SELECT 1 FROM staff, JSON_TABLE(CONCAT('[', REPEAT('1,', LENGTH(email)), '1]'), '$[*]' COLUMNS (x INT PATH '$')) AS j",
    ],
    "clickhouse": CLICKHOUSE_SPELLED_OUT,
}
"""By the rows that come, these would tell a masked value though it is in none of them: they are
refused.
"""

NOT_MYSQL = frozenset(
    {
        *(
            sql
            for group in (HARMLESS, MASKED_OPEN, SHOWN_WHOLE)
            for sql in group["all"]
            if "||" in sql
        ),
        *(sql for sql in MASKED_OPEN["all"] if "FILTER" in sql),
        "SELECT name FROM staff WHERE email = 'x' || name",
    }
)
"""Texts that must run and that mean something else there: `||` is OR, and there is no FILTER."""

NOT_CLICKHOUSE = frozenset(
    {
        "SELECT (SELECT s.email) AS e, s.name FROM staff s ORDER BY e",
        "SELECT upper(email) AS e FROM staff UNION ALL SELECT 'D' ORDER BY 1",
    }
)
"""Texts that mean something else there: ORDER BY takes no correlated subquery, and after a union it
holds for the last SELECT.
"""
UNLIKE = {"mysql": NOT_MYSQL, "clickhouse": NOT_CLICKHOUSE}
