"""Word a result whose values are withheld from the analyst: what it holds and where the person finds it."""

from typing import Any


def withheld_text(data: dict[str, Any], language: str) -> str:
    """Return the answer's text from run_sql's answer: number of rows, columns and handle, never a value."""
    count = int(data.get("row_count") or 0)
    columns = [str(column) for column in data.get("columns", [])]
    handle = str(data.get("handle") or "")
    if language == "zh":
        if not count:
            return "没有符合条件的记录。"
        place = f"，结果编号 {handle}" if handle else ""
        return f"查询返回 {count:,} 行，列为：{'、'.join(columns)}{place}。按隐私设置，我看不到其中的值；完整结果已显示给您。"
    if not count:
        return "Nothing matches: the query returned no rows."
    rows = "1 row" if count == 1 else f"{count:,} rows"
    place = f", as result {handle}" if handle else ""
    return (
        f"The query returned {rows} with the columns {', '.join(columns)}{place}. "
        "By the privacy setting its values are withheld from me; the whole result is shown to you."
    )
