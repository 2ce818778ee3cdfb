"""What to do about an error, in Chinese; its English sentence says so itself, and stays beside it for the details."""

from longtable.base.errors import LongtableError

ADVICE: dict[str, str] = {
    "error": "请重试",
    "config": "请检查选项、参数和环境变量",
    "missing_extra": "请先安装",
    "input": "请修改消息后重新发送",
    "thread_not_found": "用 longtable threads 查看已有的会话",
    "turn_pending": "请先完成上一轮，或重新提问",
    "wrong_decision": "请回答：y 批准，n 原因 拒绝，e SQL 修改",
    "nothing_asked": "可以直接提问",
    "thread_busy": "请等另一条消息处理完后再试",
    "unknown_turn": "请给出会话中已有的轮次",
    "thread_exists": "请换一个编号，或先删除原有会话",
    "thread_format": "请使用由 longtable threads export 导出的完整文件",
    "unknown_message": "请先用 /history 查看消息",
    "unknown_pin": "用 /pins 查看编号",
    "unknown_topic": "用 /topics 查看编号",
    "undo_too_far": "更早的压缩已无法撤销",
    "persistence": "请检查会话存储的位置、权限和剩余空间（--store）",
    "damaged_thread": "用 longtable threads fork 取出可读的部分，或用 longtable threads delete 删除",
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
    "provider_rate_limited": "请稍后重试",
    "provider_unavailable": "请检查网络和服务地址（--base-url），然后重试",
    "provider_refused": "请检查模型名称（--model）和服务的要求；聊天中可用 /retry 重试，或用 /exclude 排除一条消息",
    "provider_protocol": "请检查服务地址（--base-url）",
    "model_context_overflow": "请缩短问题，或换上限更大的模型（--model-limit）",
}
"""One for each code; a class without one of its own takes its base's."""


def advice_for(error: LongtableError) -> str:
    """Return what a Chinese reader may do about an error."""
    codes = (getattr(each, "code", "") for each in type(error).__mro__)
    return next(ADVICE[code] for code in codes if code in ADVICE)
