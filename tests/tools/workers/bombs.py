"""Texts that try to take memory, processor, stack, the interpreter's lock, disk or time: 40 for
each engine, by what each does.

Most pass the walls; the database is `tests/tools/databases.py`. No outcome is written here: each
must end, one way or the other, without harm to anyone else.
"""


def nested(opening: str, depth: int, closing: str = ")", inner: str = "1") -> str:
    """Return `inner` within so many brackets."""
    return opening * depth + inner + closing * depth


def _doubling(count: int, template: str, first: str) -> str:
    """Return CTEs a0 to a<count>, each made of the one before."""
    rest = "".join(f", a{i} AS ({template.format(f'a{i - 1}')})" for i in range(1, count + 1))
    return f"WITH a0 AS ({first}){rest}"


_PARSER = {
    "types within types": f"SELECT {nested('DATE (', 28)}",
    "types never closed": "SELECT " + "TIMESTAMP(" * 400,
    "types within types, many times": "SELECT " + f"{nested('DATE (', 8)}," * 600 + "1",
    "a type within a name": f"""SELECT CAST(1 AS "{nested("DATE(", 18, inner="")}")""",
    "ten thousand brackets": f"SELECT {nested('(', 10_000)}",
    "a list of 24,000 numbers": (
        f"SELECT count(*) FROM people WHERE id IN ({','.join('1' * 24_000)})"
    ),
    "9,000 conditions in a row": "SELECT count(*) FROM people WHERE " + "id OR " * 8_000 + "id",
    "a chain of 12,000 sums": "SELECT " + "1+" * 12_000 + "1",
    "subscripts of a long list": "SELECT ([" + ",".join("1" * 8_000) + "])" + "[1]" * 29,
    "an open quote": "SELECT " + "'" * 45_001,
    "open comments": "SELECT " + "/*" * 24_000,
    "twelve megabytes": "SELECT 1 " + ", 1" * 4_000_000,
    "2,000 unions": " UNION ALL ".join(["SELECT 1"] * 2_000),
    "CASE in CASE": f"SELECT {nested('CASE WHEN id = 1 THEN 1 ELSE (', 29, ') END')} FROM people",
    "names of 40,000 letters": f"SELECT {'x' * 40_000} FROM {'y' * 9_000}",
    "30 doubling CTEs": (
        _doubling(30, "SELECT x.n FROM {0} x, {0} y", "SELECT n FROM numbers")
        + " SELECT count(*) FROM a30"
    ),
}

_SQL = {
    "a cross join of five": (
        "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d, numbers e"
    ),
    "a cross join sorted": (
        "SELECT a.n FROM numbers a, numbers b, numbers c ORDER BY a.n * b.n - c.n"
    ),
    "an endless recursion": (
        "WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM f) SELECT count(*) FROM f"
    ),
    "an endless recursion of joins": (
        "WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT 1 FROM f, numbers) SELECT count(*)"
        " FROM f"
    ),
    "text doubled without end": (
        "WITH RECURSIVE f(s) AS (SELECT CAST('xxxxxxxxxx' AS TEXT) UNION ALL SELECT s || s FROM f)"
        " SELECT max(length(s)) FROM f"
    ),
    "growing windows": (
        "SELECT sum(x) FROM (SELECT count(*) OVER (ORDER BY a.n + b.n + c.n) AS x FROM numbers a,"
        " numbers b, numbers c) q"
    ),
    "replace in replace": (
        "SELECT length(" + nested("replace(", 12, f", 'x', '{'x' * 60}')", inner="'xxxxxxxx'") + ")"
    ),
    "a correlated count of everything": (
        "SELECT sum((SELECT count(*) FROM numbers b, numbers c WHERE b.n * c.n > a.n)) FROM"
        " numbers a"
    ),
}

SQLITE = {
    "28 doubling subqueries": (
        "SELECT count(*) FROM " + nested("(SELECT * FROM ", 15, ") q", inner="numbers, people")
    ),
    "CTEs of five unions": (
        _doubling(
            9,
            "SELECT n FROM {0} UNION ALL SELECT n FROM {0} UNION ALL SELECT n FROM {0}",
            "SELECT n FROM numbers",
        )
        + " SELECT count(*) FROM a9"
    ),
    "CTEs that name themselves in expressions": (
        _doubling(24, "SELECT n + n AS n FROM {0}", "SELECT n FROM numbers")
        + " SELECT max(n) FROM a24"
    ),
    "60 tables joined": "SELECT count(*) FROM " + ", ".join(f"numbers t{i}" for i in range(60)),
    "60 tables to be put in order": (
        "SELECT count(*) FROM people t0 "
        + " ".join(
            f"JOIN people t{i} ON "
            + " OR ".join(
                f"t{i}.{a} = t{j}.{b}"
                for j in (i - 1, i // 2, i // 3)
                for a in ("id", "name", "boss_id")
                for b in ("id", "name")
            )
            for i in range(1, 60)
        )
    ),
    "zeroblob": "SELECT hex(zeroblob(1000000000))",
    "randomblob": "SELECT length(hex(randomblob(900000000)))",
    "printf": "SELECT length(printf('%.*c', 100000000, 'x'))",
    "printf for each row": "SELECT printf('%90000d', n) FROM numbers",
    "hex in hex": f"SELECT length({nested('hex(', 26, inner='name')}) FROM people",
    "replace of long by long": (
        "SELECT length(replace(replace(printf('%90000d', 1), ' ', printf('%10000d', 1)), ' ',"
        " 'abcdefgh'))"
    ),
    "group_concat": (
        "SELECT length(group_concat(a.n || b.n || c.n)) FROM numbers a, numbers b, numbers c"
    ),
    "a list in JSON": (
        "SELECT length(json_group_array(json_array(a.n, b.n, c.n))) FROM numbers a, numbers b,"
        " numbers c"
    ),
    "JSON within JSON": f"SELECT length({nested('json_quote(', 24, inner=repr(chr(92) * 90))})",
    "json_each of itself": (
        "SELECT count(*) FROM json_each((SELECT json_group_array(n) FROM numbers)) a,"
        " json_each((SELECT json_group_array(n) FROM numbers)) b, json_each((SELECT"
        " json_group_array(n) FROM numbers)) c"
    ),
    "deep JSON": (
        "SELECT count(*) FROM json_tree(replace(replace(printf('%900d', 0), ' ', '['), '0', '1'))"
    ),
    "a text nearly replaced": (
        "SELECT length(replace(replace(printf('%90000d', 1), ' ', 'aaaaaaaaaaaaaaaaaaaa'),"
        " replace(printf('%90000d', 2), ' ', 'aaaaaaaaaa'), 'x')) FROM numbers"
    ),
    "LIKE with many per cents": (
        "SELECT count(*) FROM numbers WHERE replace(printf('%9000d', n), ' ', 'a') LIKE"
        f" '{'%a' * 30}%b'"
    ),
    "soundless sort": (
        "SELECT count(*) FROM (SELECT DISTINCT a.n * 4000000 + b.n * 2000 + c.n FROM numbers a,"
        " numbers b, numbers c)"
    ),
    "a needle nearly found": (
        "SELECT instr(replace(printf('%90000d', 1), ' ', 'aaaaaaaaaaaaaaaaaaaa'),"
        " replace(printf('%90000d', 2), ' ', 'aaaaaaaaaa'))"
    ),
    "rows that never come": (
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t WHERE"
        " x < 0"
    ),
    "a queue that grows": (
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION SELECT x + a.n FROM t, numbers a) SELECT count(*)"
        " FROM t ORDER BY 1"
    ),
    "two endless recursions": (
        "WITH RECURSIVE s(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM s),"
        " t(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM t) SELECT count(*) FROM s, t"
    ),
    "wide rows": (
        "SELECT "
        + ", ".join(f"printf('%900d', a.n + {i})" for i in range(300))
        + " FROM numbers a, numbers b"
    ),
}

DUCKDB = {
    "list_transform in list_transform": (
        "SELECT len(list_transform(range(9000),"
        " a -> list_transform(range(9000), b -> list_transform(range(90), c -> a * b * c))))"
    ),
    "lambdas of text": (
        "SELECT sum(len(s)) FROM (SELECT unnest(list_transform(range(9000), a -> repeat('x', 9000)"
        " || a)) AS s)"
    ),
    "list_reduce of text": (
        "SELECT len(list_reduce(list_transform(range(40), a -> 'xxxxxxxx'), (a, b) -> a || a || b))"
    ),
    "list_reduce doubling lists": (
        "SELECT len(list_reduce(list_transform(range(40), a -> [a]), (a, b) -> list_concat(a, a)))"
    ),
    "replace of repeat": (
        "SELECT length(replace(replace(repeat('x', 9000), 'x', repeat('y', 900)), 'y', repeat('z',"
        " 900)))"
    ),
    "repeat for each row": "SELECT string_agg(repeat('x', 10000), '') FROM range(1000000)",
    "text of rows and rows": (
        "SELECT sum(length(a.s || b.s)) FROM (SELECT repeat('x', 9000) AS s FROM range(9000)) a,"
        " (SELECT repeat('y', 9000) AS s FROM range(9000)) b"
    ),
    "a chain of ||": (
        "SELECT length(x) FROM "
        + nested(
            "(SELECT x || x || x || x || x || x || x || x AS x FROM ",
            9,
            ") q",
            inner="(SELECT repeat('x', 9) AS x) q",
        )
    ),
    "list of everything": "SELECT len(list(a.range)) FROM range(100000) a, range(100000) b",
    "a list sorted": "SELECT list_sort(list(a.n * b.n)) FROM numbers a, numbers b, numbers c",
    "a long range": "SELECT len(range(10000000000))",
    "a range unnested": (
        "SELECT sum(u) FROM (SELECT unnest(range(9000000)) AS u FROM range(9000000))"
    ),
    "a filter of lambdas": (
        "SELECT len(list_filter(list_transform(range(9000000), x -> {'a': x, 'b': [x, x, x]}), y ->"
        " y.a > 1))"
    ),
    "maps of lists": (
        "SELECT map_from_entries(list({'k': a.n * b.n, 'v': c.n})) FROM numbers a, numbers b,"
        " numbers c"
    ),
    "a histogram of everything": (
        "SELECT histogram(a.range * 100000 + b.range) FROM range(100000) a, range(100000) b"
    ),
    "distinct values of billions": (
        "SELECT count(DISTINCT a.range * 100000 + b.range) FROM range(100000) a, range(100000) b"
    ),
    "a pattern that backtracks": (
        "SELECT count(*) FROM range(300000) r(i)"
        " WHERE regexp_matches(repeat('a', 9000) || i, '(a*)*(a|aa)*(a?){50}b$')"
    ),
    "a pattern of many repeats": (
        "SELECT regexp_replace(repeat('ab', 9000),"
        f" '(a|b|ab){{1,999}}{nested('(', 20, '.{1,9}){1,9}', '.')}', 'x', 'g')"
    ),
    "a text split and joined": (
        "SELECT len(string_split(string_agg(a.range, ','), ',')) FROM range(30000000) a"
    ),
    "levenshtein": (
        "SELECT sum(levenshtein(repeat('a', 10000) || a.range, repeat('b', 10000) || b.range))"
        " FROM range(3000) a, range(3000) b"
    ),
    "JSON of rows": (
        "SELECT length(json_group_array({'a': a.range, 'b': repeat('x', 900)})) FROM"
        " range(9000000) a"
    ),
    "bitstring": "SELECT bit_count(bitstring('1', 2000000000))",
    "a window of everything": (
        "SELECT max(x) FROM (SELECT list(b.range) OVER (ORDER BY b.range) AS x FROM"
        " range(200000) b)"
    ),
    "factorials": (
        "SELECT sum(list_product(list_transform(range(9000), x -> sin(x) * b.range))) FROM"
        " range(90000000) b"
    ),
}

POSTGRES = {
    "a series without end": "SELECT count(*) FROM generate_series(1, 1000000000000)",
    "a series of series": (
        "SELECT count(*) FROM generate_series(1, 900000) a, generate_series(1, 900000) b"
    ),
    "repeat": "SELECT length(repeat('x', 1000000000))",
    "repeat in repeat": "SELECT length(repeat(repeat('x', 10000), 10000))",
    "repeat for each row": (
        "SELECT string_agg(repeat('x', 10000), '') FROM generate_series(1, 1000000) g(i)"
    ),
    "arrays of everything": "SELECT array_agg(a.n) FROM numbers a, numbers b, numbers c",
    "JSON of everything": (
        "SELECT length(json_agg(a.n + b.n + c.n)::text) FROM numbers a, numbers b, numbers c"
    ),
    "a sleep": "SELECT pg_sleep(600)",
    "a sleep for each row": "SELECT count(pg_sleep(1)) FROM numbers",
    "a pattern that backtracks": "SELECT repeat('a', 9000) ~ '(a*)*(a|aa)*b$'",
    "a pattern that remembers": r"SELECT regexp_count(repeat('ab', 5000), '((a|b)*)\1\1(a|b)*c')",
    "a pattern of many repeats": (
        f"SELECT regexp_replace(repeat('ab', 5000), '{nested('(', 12, '){1,9}', 'a|b')}c', 'x',"
        " 'g')"
    ),
    "a split of everything": (
        "SELECT count(*) FROM regexp_split_to_table(repeat('a,', 10000), ',') a,"
        " regexp_split_to_table(repeat('a,', 10000), ',') b"
    ),
    "unnest of unnest": (
        "SELECT count(*) FROM unnest(string_to_array(repeat('a,', 10000), ',')) a,"
        " unnest(string_to_array(repeat('a,', 10000), ',')) b, numbers"
    ),
    "a temporary file": (
        "SELECT a.n, b.n, repeat('x', 9000) FROM numbers a, numbers b ORDER BY a.n * b.n - b.n, 3"
    ),
    "a hash of everything": (
        "SELECT count(DISTINCT (a.n, b.n, c.n)) FROM numbers a, numbers b, numbers c"
    ),
    "factorials": "SELECT length(factorial(30000)::text) FROM numbers",
    "powers": (
        "SELECT length((2::numeric ^ 100000)::text), length((3.1::numeric ^ 9999.9)::text) FROM"
        " numbers"
    ),
    "a number of 130,000 digits": (
        "SELECT sum(length((repeat('9', 10000)::numeric * repeat('9', 10000)::numeric * n)::text))"
        " FROM numbers"
    ),
    "levenshtein by hand": (
        "SELECT sum(length(replace(repeat(a.n::text, 9000), b.n::text, repeat('x', 900)))) FROM"
        " numbers a, numbers b"
    ),
    "a window of everything": (
        "SELECT max(array_length(x, 1)) FROM (SELECT array_agg(a.n) OVER (ORDER BY a.n, b.n) AS x"
        " FROM numbers a, numbers b) q"
    ),
    "text search": (
        "SELECT count(*) FROM numbers WHERE to_tsvector('english', repeat('word ' || n || ' ',"
        " 9000)) @@ to_tsquery('word')"
    ),
    "deep JSON": "SELECT (repeat('[', 9000) || repeat(']', 9000))::jsonb",
    "24 doubling rows": (
        _doubling(
            20, "SELECT array_cat(x, x) AS x FROM {0}", "SELECT array_agg(n) AS x FROM numbers"
        )
        + " SELECT array_length(x, 1) FROM a20"
    ),
}

MYSQL = {
    "repeat of repeat": "SELECT REPEAT(REPEAT('x', 10000000), 1000)",
    "wide rows": "SELECT REPEAT(a.n, 90000), REPEAT(b.n, 90000) FROM numbers a, numbers b",
    "a value for each row": "SELECT MAX(LENGTH(REPEAT('x', 8000000 + n))) FROM numbers",
    "a temporary table": "SELECT DISTINCT REPEAT(a.n, 900), b.n, c.n FROM numbers a, numbers b, numbers c",
    "a sort of everything": "SELECT REPEAT('x', 900) FROM numbers a, numbers b ORDER BY RAND()",
    "text joined of everything": "SELECT LENGTH(GROUP_CONCAT(a.n, b.n)) FROM numbers a, numbers b",
    "JSON of everything": "SELECT LENGTH(JSON_ARRAYAGG(a.n)) FROM numbers a, numbers b",
    "a pattern that backtracks": "SELECT COUNT(*) FROM numbers a, numbers b WHERE REPEAT('a', 500) REGEXP '(a+)+b'",
    "deep JSON": "SELECT JSON_VALID(CONCAT(REPEAT('[', 100000), REPEAT(']', 100000)))",
    "an endless sum": "SELECT SUM(SHA2(CONCAT(a.n, b.n), 512)) FROM numbers a, numbers b, numbers c",
}

CLICKHOUSE = {
    "repeat of repeat": "SELECT length(repeat(repeat('x', 1000000), 1000000))",
    "repeat for each row": "SELECT repeat('x', 1000000) FROM numbers",
    "a value for each row": "SELECT max(length(repeat('x', 900000 + n))) FROM numbers",
    "ranges of everything": "SELECT sum(length(range(100000))) FROM numbers a, numbers b",
    "an array of everything": "SELECT groupArray(number) FROM numbers(10000000000)",
    "a list of texts": "SELECT groupArray(repeat('x', 10000)) FROM numbers(10000000)",
    "text joined of everything": "SELECT length(groupConcat(a.n, b.n)) FROM numbers a, numbers b",
    "a sort of everything": "SELECT number FROM numbers(100000000000) ORDER BY cityHash64(number)",
    "a hash of everything": "SELECT uniqExact(number) FROM numbers(100000000000)",
    "a group of everything": "SELECT number, count() FROM numbers(100000000000) GROUP BY number",
    "a join of everything": "SELECT count(*) FROM numbers(1000000000) a JOIN numbers(1000000000) b ON a.number = b.number",
    "a lambda of lambdas": "SELECT arrayMap(x -> arrayMap(y -> range(100000), range(10000)), range(10000))",
    "a pattern that backtracks": "SELECT count() FROM numbers(1000000000) WHERE match(repeat('a', 500), '(a+)+b')",
    "a product of arrays": "SELECT count() FROM (SELECT arrayJoin(range(100000)) AS x, arrayJoin(range(100000)) AS y)",
    "wide numbers": "SELECT sum(toUInt256(number) * toUInt256(number)) FROM numbers(1000000000000)",
    "replace of repeat": "SELECT length(replaceAll(repeat('a', 1000000), 'a', repeat('b', 10000)))",
    "levenshtein": "SELECT sum(levenshteinDistance(repeat('ab', 5000), repeat('ba', 5000))) FROM numbers",
}

BOMBS = {
    "sqlite": _PARSER | _SQL | SQLITE,
    "duckdb": _PARSER | _SQL | DUCKDB,
    "postgres": _PARSER | _SQL | POSTGRES,
    "mysql": _PARSER | _SQL | MYSQL,
    "clickhouse": _PARSER | _SQL | CLICKHOUSE,
}
