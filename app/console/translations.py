"""What the command line says, in English and Chinese."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from longtable.base.errors import LongtableError
from longtable.tools.engines.base import LOAD_SENTENCES

WORDS: dict[str, dict[str, str]] = {
    "new_thread": {"en": "new thread {id}", "zh": "新会话 {id}"},
    "old_thread": {"en": "thread {id}, continued", "zh": "继续会话 {id}"},
    "greeting": {"en": "{model} on database {database}", "zh": "{model}，数据库 {database}"},
    "greeting_keys": {
        "en": (
            "Ask a question. /help lists the commands, Alt-Enter begins a new line, Ctrl-C stops"
            " an answer, Ctrl-D leaves."
        ),
        "zh": "请提问。/help 列出命令，Alt-Enter 换行，Ctrl-C 停止回答，Ctrl-D 离开。",
    },
    "goodbye": {
        "en": "Continue with: {longtable} chat --thread {id}",
        "zh": "下次继续：{longtable} chat --thread {id}",
    },
    "init_written": {
        "en": "{file} is written. Edit it; `{longtable} config` shows what holds.",
        "zh": "已写入 {file}。请按需修改；`{longtable} config` 显示当前设置。",
    },
    "team_turn": {
        "en": (
            "Team ({mode}): tokens of each next call: {tokens}. The turn makes at most {calls}"
            " model calls."
        ),
        "zh": "团队（{mode}）：下次调用的词元数：{tokens}。本轮最多 {calls} 次模型调用。",
    },
    "unknown_mentions": {
        "en": "Nobody here is called {words}; the team is {known}.",
        "zh": "这里没有 {words}；团队成员是 {known}。",
    },
    "resuming": {
        "en": "The last turn has not ended yet; it is finished first.",
        "zh": "上一轮还没有结束，先把它完成。",
    },
    "approval_waits": {
        "en": "The last turn waits for your approval.",
        "zh": "上一轮在等待您的批准。",
    },
    "approval_ask": {
        "en": (
            "Run it? y: yes; n REASON: no; e SQL: run this instead (or e, and the SQL on the next"
            " line)"
        ),
        "zh": "执行吗？y：是；n 原因：否；e SQL：改为执行这条（或只输入 e，下一行输入 SQL）",
    },
    "approval_ask_of": {
        "en": (
            "Run query {number} of {count}? y: yes; n REASON: no; e SQL: run this instead (or e,"
            " and the SQL on the next line)"
        ),
        "zh": (
            "执行第 {number} 个查询（共 {count} 个）吗？y：是；n 原因：否；e"
            " SQL：改为执行这条（或只输入 e，下一行输入 SQL）"
        ),
    },
    "approval_sql": {
        "en": "The SQL that is to run instead, on one line:",
        "zh": "请在一行内输入要执行的 SQL：",
    },
    "approval_replaced": {
        "en": (
            "That is neither y, n nor e: the query is not run, and the message is answered instead."
        ),
        "zh": "这不是 y、n 或 e：查询不执行，改为回答这条消息。",
    },
    "approval_left": {
        "en": "A query still waits for your approval. Decide with: {longtable} chat --thread {id}",
        "zh": "仍有查询在等待您的批准。请用 {longtable} chat --thread {id} 作出决定",
    },
    "approval_needed": {
        "en": (
            "This query needs approval and was not run. Decide with: {longtable} chat --thread {id}"
            " (or use --approve-sql never)"
        ),
        "zh": (
            "这个查询需要批准，尚未执行。请用 {longtable} chat --thread {id} 作出决定（或加"
            " --approve-sql never 再问）"
        ),
    },
    "cancelled": {
        "en": "Cancelled. The thread is kept; ask on, or Ctrl-C again to leave.",
        "zh": "已取消。会话已保留；可以继续提问，再按 Ctrl-C 离开。",
    },
    "cancelled_ask": {"en": "Cancelled.", "zh": "已取消。"},
    "leave": {"en": "Ctrl-C again or Ctrl-D leaves.", "zh": "再按 Ctrl-C 或按 Ctrl-D 离开。"},
    "error": {"en": "Error", "zh": "错误"},
    "note": {"en": "Note", "zh": "提示"},
    "hint": {"en": "Hint", "zh": "提示"},
    "advice": {"en": "{advice} ({details})", "zh": "{advice}（{details}）"},
    "bug": {"en": "Something went wrong inside longtable.", "zh": "longtable 内部出错。"},
    "bug_hint": {
        "en": "{kind}; run again with --debug for the details",
        "zh": "{kind}；加 --debug 重试可看详情",
    },
    "output_failed": {
        "en": "The output cannot be written: {reason}.",
        "zh": "无法写出结果：{reason}。",
    },
    "line": {
        "en": "line {number}: {reason}; it is skipped",
        "zh": "第 {number} 行：{reason}；已跳过",
    },
    "not_utf8": {"en": "not valid UTF-8 at byte {place}", "zh": "第 {place} 字节不是有效的 UTF-8"},
    "nul": {"en": "it holds a NUL character", "zh": "含有 NUL 字符"},
    "too_long": {"en": "longer than {limit} bytes", "zh": "超过 {limit} 字节"},
    "context": {"en": "context", "zh": "上下文"},
    "team": {"en": "team", "zh": "团队"},
    "tokens": {"en": "tokens", "zh": "个词元"},
    "system": {"en": "system", "zh": "系统"},
    "tools": {"en": "tools", "zh": "工具"},
    "memory": {"en": "memory", "zh": "记忆"},
    "messages": {"en": "messages", "zh": "消息"},
    "passed": {"en": "passed on", "zh": "附带资料"},
    "estimated": {"en": "estimated", "zh": "估计"},
    "compacted": {
        "en": "compacted {before} -> {after} tokens ({count} messages, {how})",
        "zh": "已压缩 {before} -> {after} 个词元（{count} 条消息，{how}）",
    },
    "compacted_1": {
        "en": "compacted {before} -> {after} tokens ({count} message, {how})",
        "zh": "已压缩 {before} -> {after} 个词元（{count} 条消息，{how}）",
    },
    "results_shortened": {
        "en": "results of earlier rounds shortened: {before} -> {after} tokens",
        "zh": "较早轮次的结果已缩短：{before} -> {after} 个词元",
    },
    "written_by": {
        "en": "compacted by {writer}: {input} in, {output} out",
        "zh": "由 {writer} 压缩：输入 {input}，输出 {output}",
    },
    "spent_on_it": {"en": " ({input} in, {output} out)", "zh": "（输入 {input}，输出 {output}）"},
    "not_compacted": {"en": "not compacted: {reasons}", "zh": "未压缩：{reasons}"},
    "ms": {"en": "{ms} ms", "zh": "{ms} 毫秒"},
    "comma": {"en": ", ", "zh": "，"},
    "from_originals": {"en": "made from the originals", "zh": "由原文重做"},
    "ahead": {"en": "for the next turn", "zh": "为下一轮准备"},
    "coverage": {"en": "{share} % of the text read", "zh": "读了 {share} % 的原文"},
    "retired": {
        "en": "{count} messages moved to the archive ({archived} in all; /history shows them)",
        "zh": "{count} 条消息已移入存档（共 {archived} 条；/history 仍可查看）",
    },
    "retired_1": {
        "en": "{count} message moved to the archive ({archived} in all; /history shows it)",
        "zh": "{count} 条消息已移入存档（共 {archived} 条；/history 仍可查看）",
    },
    "recalled": {
        "en": "recalled {count} messages on “{query}”{turns}",
        "zh": "找回 {count} 条关于“{query}”的消息{turns}",
    },
    "recalled_1": {
        "en": "recalled {count} message on “{query}”{turns}",
        "zh": "找回 {count} 条关于“{query}”的消息{turns}",
    },
    "recalled_none": {"en": "recalled nothing on “{query}”", "zh": "没有找到关于“{query}”的消息"},
    "of_turns": {"en": " (turn {turns})", "zh": "（第 {turns} 轮）"},
    "charted": {"en": "chart of {handle}: {file}", "zh": "{handle} 的图：{file}"},
    "charted_as_text": {
        "en": "for a picture of {handle} run `{command}` in the checkout of longtable",
        "zh": "如需 {handle} 的图片，请在 longtable 的源码目录中运行：{command}",
    },
    "not_charted": {
        "en": "the chart of {handle} cannot be drawn here: {reason}",
        "zh": "这里无法画 {handle} 的图：{reason}",
    },
    "unsupported": {
        "en": "not found in the results: {figures}",
        "zh": "查询结果中没有这些数字：{figures}",
    },
    "audit_failed": {
        "en": "the audit of this turn was not written: the store failed ({failure})",
        "zh": "本轮的审计记录未能写入：存储出错（{failure}）",
    },
    "undone": {"en": "The newest compaction is undone.", "zh": "已撤销最近一次压缩。"},
    "nothing_to_undo": {"en": "There is no compaction to undo.", "zh": "没有可撤销的压缩。"},
    "nothing_to_retry": {
        "en": "No turn failed: there is nothing to try again.",
        "zh": "没有失败的轮次可重试。",
    },
    "excluded": {
        "en": "The model is not sent it from now on; /history still shows it.",
        "zh": "今后不再发给模型；/history 仍可查看。",
    },
    "edit_what": {
        "en": "/edit needs the new question: it takes the place of the last one and its answer",
        "zh": "/edit 后面要写新的问题：它会取代上一个问题及其回答",
    },
    "nothing_to_edit": {
        "en": "There is no question to edit: ask one first.",
        "zh": "没有可以修改的问题：请先提问。",
    },
    "edit_refused": {"en": "The question before stays.", "zh": "保留原来的问题。"},
    "excluded_pin": {
        "en": "With it goes pin {id}: “{text}”; /include brings both back.",
        "zh": "随之排除的固定内容 {id}：“{text}”；用 /include 可一并恢复。",
    },
    "not_left_out": {"en": "{message} was not left out.", "zh": "{message} 没有被排除。"},
    "included": {"en": "The model is sent it again.", "zh": "将重新发给模型。"},
    "include_what": {
        "en": (
            "/include needs a message that was left out: last, or a number of /history"
            " (/include m3)"
        ),
        "zh": "/include 后面要写已排除的消息：last，或 /history 中的编号（/include m3）",
    },
    "wrong_argument": {
        "en": "{name} does not take “{argument}”. {name}: {does}",
        "zh": "{name} 不接受“{argument}”。{name}：{does}",
    },
    "compact_preview": {
        "en": (
            "Nothing was compacted. /compact would compact messages m{first} to m{last}: {before}"
            " -> at most {after} tokens, summariser calls: {calls}."
        ),
        "zh": (
            "尚未压缩。/compact 将压缩消息 m{first} 至 m{last}：{before} -> 最多 {after} 个词元，"
            "摘要模型调用 {calls} 次。"
        ),
    },
    "exclude_what": {
        "en": "/exclude needs a message: last, or a number of /history (/exclude m3)",
        "zh": "/exclude 后面要写消息：last，或 /history 中的编号（/exclude m3）",
    },
    "left_out_mark": {"en": "(left out)", "zh": "（已排除）"},
    "no_pins": {"en": "Nothing is pinned.", "zh": "没有固定的内容。"},
    "pinned": {
        "en": "Pinned as {id}: it stays word for word in every call.",
        "zh": "已固定为 {id}：每次调用都逐字保留。",
    },
    "unpinned": {"en": "{id} is no longer pinned.", "zh": "已取消固定 {id}。"},
    "pin_what": {
        "en": "/pin needs the words to keep: /pin amounts are in cents",
        "zh": "/pin 后面要写需保留的话：/pin 金额以分为单位",
    },
    "unpin_what": {
        "en": "/unpin needs an id: /pins lists them",
        "zh": "/unpin 后面要写编号：/pins 列出全部",
    },
    "no_topics": {"en": "There are no topics.", "zh": "没有主题。"},
    "head_id": {"en": "id", "zh": "编号"},
    "head_pin_by": {"en": "pinned by", "zh": "来源"},
    "head_ended": {"en": "ended by", "zh": "结束于"},
    "pin_model": {"en": "the model", "zh": "模型"},
    "pin_heuristic": {"en": "said in passing", "zh": "顺带说过"},
    "pin_user": {"en": "you", "zh": "您"},
    "pin_restored": {"en": "{id} holds again.", "zh": "{id} 重新有效。"},
    "pin_ended": {
        "en": "pin {id} ended: “{quote}”; /pins {id} restores it",
        "zh": "{id} 已结束：“{quote}”；/pins {id} 可恢复",
    },
    "thread_waiting": {
        "en": "Another program works on this thread: your message waits for it.",
        "zh": "另一个程序正在处理这个会话：您的消息正在等待。",
    },
    "model_retry": {
        "en": "The model's provider asks to wait: trying again in {seconds} s.",
        "zh": "模型服务要求等待：{seconds} 秒后重试。",
    },
    "head_turn": {"en": "turn", "zh": "轮次"},
    "head_text": {"en": "text", "zh": "内容"},
    "head_version": {"en": "version", "zh": "版本"},
    "head_title": {"en": "title", "zh": "标题"},
    "head_summary": {"en": "summary", "zh": "摘要"},
    "nothing_to_fold": {
        "en": "There is nothing to compact yet: the newest round stays word for word.",
        "zh": "目前没有可压缩的内容：最新一轮逐字保留。",
    },
    "all_compacted": {
        "en": "All but the newest rounds is compacted already; those stay word for word.",
        "zh": "除最新几轮外都已压缩；最新几轮逐字保留。",
    },
    "window_only": {
        "en": "The policy is a sliding window: it compacts nothing.",
        "zh": "当前策略是滑动窗口：不做压缩。",
    },
    "nothing_to_compact": {
        "en": "There is nothing to compact yet.",
        "zh": "目前没有可压缩的内容。",
    },
    "model": {"en": "model", "zh": "模型"},
    "fallback": {"en": "by code", "zh": "由代码写"},
    "rows": {"en": "{count} rows, {ms} ms", "zh": "{count} 行，{ms} 毫秒"},
    "rows_1": {"en": "{count} row, {ms} ms", "zh": "{count} 行，{ms} 毫秒"},
    "more_rows": {
        "en": "... {count} more rows (/table shows all)",
        "zh": "... 还有 {count} 行（/table 显示全部）",
    },
    "more_rows_1": {
        "en": "... {count} more row (/table shows all)",
        "zh": "... 还有 {count} 行（/table 显示全部）",
    },
    "more_columns": {
        "en": "... {count} more columns: {names} (/table shows all)",
        "zh": "... 还有 {count} 列：{names}（/table 显示全部）",
    },
    "more_columns_1": {
        "en": "... {count} more column: {names} (/table shows all)",
        "zh": "... 还有 {count} 列：{names}（/table 显示全部）",
    },
    "no_table": {"en": "No result was shown in this chat yet.", "zh": "本次聊天还没有显示过结果。"},
    "no_such_table": {
        "en": "There is no table {number}: there are {count}.",
        "zh": "没有第 {number} 个表：共有 {count} 个。",
    },
    "no_such_table_1": {
        "en": "There is no table {number}: there is {count}.",
        "zh": "没有第 {number} 个表：共有 {count} 个。",
    },
    "no_results": {"en": "This thread has no results yet.", "zh": "本会话还没有结果。"},
    "result_what": {
        "en": "/result needs a handle: {handles}",
        "zh": "/result 后面要写句柄：{handles}",
    },
    "result_saved": {
        "en": "{handle} ({count} rows) is written to {file}.",
        "zh": "{handle}（{count} 行）已写入 {file}。",
    },
    "result_formulas": {
        "en": (
            "Cells that begin with =, +, -, @ or a tab: {count}. A spreadsheet may run them: write"
            " .xlsx, or --csv --quote-formulas."
        ),
        "zh": (
            "{count} 个单元格以 =、+、-、@ 或制表符开头，电子表格可能会执行它们。请写成 .xlsx，或用"
            " --csv --quote-formulas。"
        ),
    },
    "result_saved_1": {
        "en": "{handle} ({count} row) is written to {file}.",
        "zh": "{handle}（{count} 行）已写入 {file}。",
    },
    "cut_off": {
        "en": (
            "The model's answer was cut off: it has reached the most tokens that its provider"
            " gives. Ask it to go on, or for less."
        ),
        "zh": "模型的回答被截断：已达到其服务商允许的最大词元数。请让它继续，或缩小问题。",
    },
    "limit_too_small": {
        "en": (
            "The model's limit is too small for this: what the tools returned needs one of {need}"
            " tokens at least (--model-limit {number}, or a model that takes more)."
        ),
        "zh": (
            "模型上限太小：工具返回的内容至少需要 {need} 个词元的上限（--model-limit {number}，"
            "或换上限更大的模型）。"
        ),
    },
    "limit_below_tools": {
        "en": (
            "The model's limit is too small: instructions and tools alone need one of {need} tokens"
            " at least (--model-limit {number}, or a model that takes more)."
        ),
        "zh": (
            "模型上限太小：仅指令和工具就至少需要 {need} 个词元的上限（--model-limit {number}，"
            "或换上限更大的模型）。"
        ),
    },
    "no_usage": {
        "en": "Nothing was counted yet: ask something first.",
        "zh": "还没有计数：请先提问。",
    },
    "no_history": {
        "en": "The thread is empty so far: ask something first.",
        "zh": "会话还是空的：请先提问。",
    },
    "not_kept": {
        "en": "This result is not kept, and has no handle: {why}",
        "zh": "这个结果没有保存，也没有句柄：{why}",
    },
    "no_such_threads": {
        "en": "No thread fits, or there is no such page.",
        "zh": "没有符合的会话，或没有这一页。",
    },
    "no_store": {
        "en": "There is no store at {file}; nothing was created.",
        "zh": "{file} 处没有存储；没有新建任何文件。",
    },
    "no_threads": {"en": "There are no threads yet.", "zh": "还没有会话。"},
    "unknown_command": {
        "en": "There is no command {name}: /help lists them.",
        "zh": "没有命令 {name}：/help 列出全部命令。",
    },
    "building": {"en": "Building the demo database", "zh": "正在建立演示数据库"},
    "no_archive": {
        "en": "No compaction of this thread was archived: chat with --archive-on-compact.",
        "zh": "此会话没有归档过压缩：请用 --archive-on-compact 聊天。",
    },
    "no_queries": {"en": "No query was sent yet.", "zh": "还没有发过查询。"},
    "nothing_found": {"en": "Nothing was found.", "zh": "没有找到。"},
    "damaged_thread": {
        "en": (
            "Thread {id} is damaged and was left out. A new thread of what can be read of it:"
            " {longtable} threads fork {argument}"
        ),
        "zh": (
            "会话 {id} 已损坏，未计入。可用其可读部分新建会话：{longtable} threads fork {argument}"
        ),
    },
    "damaged_line": {
        "en": "The list's line of thread {id} is damaged; its next turn writes it anew.",
        "zh": "会话 {id} 在列表中的记录已损坏；下一轮对话会重新写入。",
    },
    "renamed": {"en": "Thread {id} is now called: {title}", "zh": "会话 {id} 的新标题：{title}"},
    "moved": {"en": "Project of thread {id}: {project}", "zh": "会话 {id} 的项目：{project}"},
    "forked": {
        "en": (
            "New thread {id}: thread {thread} up to turn {turn}. Continue with: {longtable} chat"
            " --thread {argument}"
        ),
        "zh": "新会话 {id}，含 {thread} 的前 {turn} 轮。继续：{longtable} chat --thread {argument}",
    },
    "exported": {"en": "Thread {id} is written to {file}.", "zh": "会话 {id} 已写入 {file}。"},
    "imported": {"en": "Thread {id} is imported.", "zh": "会话 {id} 已导入。"},
    "delete_ask": {
        "en": "Delete thread {id} with all that is stored of it?",
        "zh": "删除会话 {id} 及其全部内容？",
    },
    "deleted": {"en": "Thread {id} is deleted.", "zh": "会话 {id} 已删除。"},
    "prune_ask": {"en": "Delete these threads ({count})?", "zh": "删除以上会话（{count} 个）？"},
    "reduce_ask": {
        "en": "Drop the checkpoints of these threads ({count})? Transcript and memory stay.",
        "zh": "删除以上会话（{count} 个）的检查点？对话与记忆会保留。",
    },
    "pruned": {"en": "Threads deleted: {count}", "zh": "已删除会话：{count} 个"},
    "reduced": {
        "en": "Threads reduced to transcript and memory: {count}",
        "zh": "已精简会话：{count} 个",
    },
    "nothing_to_prune": {"en": "No thread is that old.", "zh": "没有这么久未用的会话。"},
    "nothing_done": {"en": "Nothing was done.", "zh": "未做任何更改。"},
    "help_help": {"en": "list the commands", "zh": "列出命令"},
    "help_history": {"en": "show the whole conversation", "zh": "显示整个会话"},
    "help_view": {
        "en": "show what the next model call would be sent",
        "zh": "显示下一次发给模型的内容",
    },
    "help_compact": {
        "en": (
            "compact older messages into memory now (/compact preview: only say what it would do)"
        ),
        "zh": "立即压缩较早的消息（/compact preview：只预览，不压缩）",
    },
    "help_undo": {"en": "drop the newest compaction", "zh": "撤销最近一次压缩"},
    "help_retry": {"en": "run the last turn again where it failed", "zh": "重试失败的上一轮"},
    "help_edit": {
        "en": (
            "ask the last question anew, in other words (/edit How many flights in May?); the old"
            " one leaves what the model is sent"
        ),
        "zh": "换一种说法重新提出上一个问题（/edit 五月有多少航班？）；旧的问题不再发给模型",
    },
    "help_exclude": {
        "en": (
            "leave a message out of what the model is sent (/exclude m3; /exclude last: the last"
            " question and its answer)"
        ),
        "zh": "不再把一条消息发给模型（/exclude m3；/exclude last：最后一个问题及其回答）",
    },
    "help_include": {
        "en": "send the model again what was left out (/include m3)",
        "zh": "重新发送已排除的消息（/include m3）",
    },
    "help_pins": {
        "en": "list what stays word for word; restore an ended one: /pins ID",
        "zh": "列出逐字保留的内容；恢复已结束的：/pins 编号",
    },
    "help_pin": {"en": "keep words for ever: /pin TEXT", "zh": "逐字保留一句话：/pin 内容"},
    "help_unpin": {"en": "let go of a pin: /unpin ID", "zh": "取消固定：/unpin 编号"},
    "help_topics": {"en": "list the topics of the conversation", "zh": "列出会话的主题"},
    "help_usage": {"en": "show the context gauge", "zh": "显示上下文用量"},
    "help_threads": {"en": "list the threads of this store", "zh": "列出所有会话"},
    "no_reasoning": {
        "en": "The model told no reasoning in this thread.",
        "zh": "本会话中模型没有给出推理过程。",
    },
    "reasoning_on": {
        "en": "The model's reasoning is shown as it comes.",
        "zh": "将实时显示模型的推理过程。",
    },
    "reasoning_off": {
        "en": "The model's reasoning is no longer shown as it comes.",
        "zh": "不再实时显示模型的推理过程。",
    },
    "help_model": {
        "en": "show which model answers; /model NAME: another one from the next turn on",
        "zh": "显示由哪个模型回答；/model 名称：从下一轮起换用另一个",
    },
    "model_now": {
        "en": "Model: {name} (to choose from: {known}).",
        "zh": "模型：{name}（可选：{known}）。",
    },
    "model_unknown": {
        "en": "There is no model {name} here: choose one of {known}.",
        "zh": "这里没有模型 {name}：可选 {known}。",
    },
    "model_no_choices": {
        "en": "There is only one model here: name others in [model] choices of longtable.toml.",
        "zh": "这里只有一个模型：可在 longtable.toml 的 [model] choices 中列出其他模型。",
    },
    "help_reasoning": {
        "en": "show the newest reasoning of the model; on or off: as it comes",
        "zh": "显示模型最近的推理过程；on 或 off：实时显示",
    },
    "help_tables": {"en": "list the tables of the database", "zh": "列出数据库中的表"},
    "help_table": {
        "en": "show the last result in full (/table 2: the second of its turn)",
        "zh": "完整显示最近的结果（/table 2：同一轮的第二个）",
    },
    "help_result": {
        "en": (
            "show a result of this thread by its handle, or write it to a file (/result r3, /result"
            " r3 file.csv, .parquet or .xlsx)"
        ),
        "zh": (
            "按句柄显示本会话的结果，或写入文件（/result r3，/result r3 文件.csv、.parquet 或 .xlsx）"
        ),
    },
    "help_quit": {"en": "leave", "zh": "离开"},
}

WORDS |= {
    f"loaded_{code}": {"en": f"{{where}}: {texts['en']}.", "zh": f"{{where}}：{texts['zh']}。"}
    for code, texts in LOAD_SENTENCES.items()
}


def say(key: str, language: str, **values: object) -> str:
    """Return one sentence of the table, filled in."""
    words = WORDS[key]
    return words.get(language, words["en"]).format(longtable=_command(), **values)


def _command() -> str:
    """Return how to call this program from the current folder: `make chat` runs it outside the
    search path.
    """
    program = Path(sys.argv[0])
    here = Path.cwd()
    if program.name != "longtable" or shutil.which("longtable"):
        return "longtable"
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))


def counted(key: str, language: str, count: int, **values: object) -> str:
    """Return a sentence about a number of things: English says one of them otherwise (the key with
    `_1`).
    """
    return say(f"{key}_1" if count == 1 else key, language, count=f"{count:,}", **values)


def system_language() -> str:
    """Return the language of the user's locale, for what is said before the first message."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.startswith("zh") else "en"
    return "en"


ADVICE: dict[str, str] = {
    "error": "请重试",
    "config": "请检查选项、参数和环境变量",
    "missing_extra": "请先安装",
    "input": "请修改消息后重新发送",
    "thread_not_found": "用 longtable threads 查看已有的会话",
    "turn_pending": "请先完成上一轮，或重新提问",
    "worker_lost": "请换一种问法，或缩小查询范围",
    "wrong_decision": "请回答：y 批准，n 原因 拒绝，e SQL 修改",
    "nothing_asked": "可以直接提问",
    "thread_busy": "请等另一条消息处理完后再试",
    "unknown_turn": "请给出会话中已有的轮次",
    "thread_exists": "请换一个编号，或先删除原有会话",
    "thread_format": "请使用由 longtable threads export 导出的完整文件",
    "unknown_message": "请先用 /history 查看消息",
    "edit_refused": "可用 /exclude 排除它，或从它之前分叉会话",
    "unknown_pin": "用 /pins 查看编号",
    "pin_refused": "请去掉密码或密钥再固定",
    "unknown_topic": "用 /topics 查看编号",
    "undo_too_far": "更早的压缩已无法撤销",
    "persistence": "请检查会话存储的位置、权限和剩余空间（--store）",
    "damaged_thread": (
        "用 longtable threads fork 取出可读的部分，或用 longtable threads delete 删除"
    ),
    "lost_messages": "请从备份恢复存储，或用 longtable threads fork 取出剩余部分",
    "newer_store": "请升级 longtable",
    "store_key": "请检查环境变量 LONGTABLE_STORE_KEY",
    "unknown_archive": "用 longtable threads archive 查看文件列表",
    "archive_gap": "请使用保存该会话的存储，或恢复其文件",
    "archive_format": "请恢复未改动的归档文件",
    "unknown_result": "请使用本会话中已有的句柄",
    "result_gone": "请重新执行查询",
    "recall_refused": "请换一个说法再查找",
    "database": "请换一种问法",
    "database_unavailable": "请检查数据库的地址和文件（--database）",
    "query_refused": "只能读取获准的表和列",
    "query_failed": "请换一种问法",
    "unknown_table": "用 /tables 查看有哪些表",
    "query_timeout": "请增加筛选条件，或先汇总",
    "connection_wait": "请稍后重试",
    "too_many_rows": "请汇总、筛选，或限制行数",
    "result_too_large": "请减少列数或行数",
    "query_memory": "请增加筛选条件，或先汇总",
    "temp_space": "请增加筛选条件，或先汇总",
    "query_cancelled": "可以重新提问",
    "provider": "请稍后重试",
    "provider_auth": "请检查环境变量中的密钥",
    "provider_quota": "请充值，或换一个模型（--model）",
    "provider_rate_limited": "请稍后重试",
    "provider_unavailable": "请检查网络和服务地址（--base-url），然后重试",
    "provider_refused": (
        "请检查模型名称（--model）和服务的要求；聊天中可用 /retry 重试，或用 /exclude 排除一条消息"
    ),
    "provider_protocol": "请检查服务地址（--base-url）",
    "model_context_overflow": "请缩短问题，或换上限更大的模型（--model-limit）",
}
"""One for each code; a class without one of its own takes its base's."""


def advice_for(error: LongtableError) -> str:
    """Return what a Chinese reader may do about an error."""
    codes = (getattr(each, "code", "") for each in type(error).__mro__)
    return next(ADVICE[code] for code in codes if code in ADVICE)
