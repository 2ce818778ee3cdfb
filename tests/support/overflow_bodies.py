"""How servers word that a request is over their context, and what merely sounds like it: status,
body, limit named.
"""

# The words stand on one line, as servers send them.

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Refusal:
    """One server's answer; `limit` in tokens as it names it, None when it does not."""

    server: str
    status: int
    body: Any
    limit: int | None = None

    def __str__(self) -> str:
        return self.server


def openai(
    message: str,
    *,
    type: str = "invalid_request_error",
    code: object = None,
    param: str | None = None,
    **more: object,
) -> Any:
    """Return a body in OpenAI's shape."""
    return {"error": {"message": message, "type": type, "param": param, "code": code, **more}}


def anthropic(message: str, type: str = "invalid_request_error") -> Any:
    """Return a body in Anthropic's shape."""
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_0123"}


MOST = "This model's maximum context length is"
FEWER = "Please reduce the length of the messages."
CODE = "context_length_exceeded"
DASHSCOPE = {"type": "invalid_request_error", "code": "invalid_parameter_error"}

OVERFLOWS = [
    Refusal(
        "openai",
        400,
        openai(
            f"{MOST} 8192 tokens. However, your messages resulted in 9000 tokens. {FEWER}",
            code=CODE,
        ),
        8_192,
    ),
    Refusal(
        "openai-with-functions",
        400,
        openai(
            f"{MOST} 16385 tokens. However, your messages resulted in 18500 tokens (18000 in the"
            " messages, 500 in the functions).",
            code=CODE,
        ),
        16_385,
    ),
    Refusal(
        "openai-with-completion",
        400,
        openai(
            f"{MOST} 4097 tokens. However, you requested 4140 tokens (2140 in the messages, 2000 in"
            " the completion).",
            code=CODE,
        ),
        4_097,
    ),
    Refusal(
        "openai-configured",
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in"
            " 300012 tokens.",
            code=CODE,
        ),
        272_000,
    ),
    Refusal(
        "openai-responses",
        400,
        openai(
            "Your input exceeds the context window of this model. Please adjust it and try again.",
            code=CODE,
        ),
    ),
    Refusal("openai-code-alone", 400, openai("Bad request", code=CODE)),
    Refusal(
        "openai-string",
        400,
        openai(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length"
            " 1048576, but got one with length 2000000.",
            code="string_above_max_length",
            param="messages[1].content",
        ),
    ),
    Refusal(
        "openai-array",
        400,
        openai(
            "Invalid 'messages': array too long. Expected an array with maximum length 2048.",
            code="array_above_max_length",
            param="messages",
        ),
    ),
    Refusal(
        "azure",
        400,
        {"error": {"message": f"{MOST} 128000 tokens. {FEWER}", "code": CODE, "param": "messages"}},
        128_000,
    ),
    Refusal(
        "vllm",
        400,
        openai(
            f"{MOST} 4096 tokens. However, you requested 5060 tokens (4036 in the messages, 1024 in"
            " the completion).",
            type="BadRequestError",
            code=400,
        ),
        4_096,
    ),
    Refusal(
        "vllm-flat",
        400,
        {
            "object": "error",
            "message": f"{MOST} 4096 tokens. However, you requested 5000 tokens in the messages.",
            "type": "BadRequestError",
            "code": 400,
        },
        4_096,
    ),
    Refusal(
        "vllm-at-least",
        400,
        openai(
            f"{MOST} 262144 tokens. However, you requested 128000 output tokens and your prompt"
            " contains at least 134145 input tokens, for a total of at least 262145 tokens."
            " (parameter=input_tokens, value=134145)",
            type="BadRequestError",
            code=400,
        ),
        262_144,
    ),
    Refusal(
        "vllm-max-tokens-beside-a-long-prompt",
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum"
            " context length is 4096 tokens and your request has 3500 input tokens (1000 > 4096 -"
            " 3500).",
            type="BadRequestError",
            code=400,
        ),
        4_096,
    ),
    Refusal(
        "vllm-nothing-left",
        400,
        openai("max_tokens must be at least 1, got -523.", type="BadRequestError", code=400),
    ),
    Refusal(
        "vllm-decoder",
        400,
        openai(
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            type="BadRequestError",
            code=400,
        ),
        4_096,
    ),
    Refusal(
        "vllm-multimodal",
        400,
        openai(
            "The prompt (total length 25938) is too long to fit into the model (context length"
            " 4096).",
            type="BadRequestError",
            code=400,
        ),
        4_096,
    ),
    Refusal(
        "sglang",
        400,
        openai(
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            code=400,
        ),
        8_192,
    ),
    Refusal(
        "sglang-total",
        400,
        openai(
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You"
            " requested a total of 9000 tokens: 8000 tokens from the input messages and 1000 tokens"
            " for the completion.",
            code=400,
        ),
        8_192,
    ),
    Refusal(
        "llama.cpp",
        400,
        openai(
            "request (9000 tokens) exceeds the available context size (4096 tokens), try"
            " increasing it",
            type="exceed_context_size_error",
            code=400,
            n_prompt_tokens=9000,
            n_ctx=4096,
        ),
        4_096,
    ),
    Refusal(
        "llama.cpp-without-numbers-in-words",
        400,
        openai(
            "the request exceeds the available context size, try increasing it",
            type="exceed_context_size_error",
            code=400,
            n_prompt_tokens=9000,
            n_ctx=4096,
        ),
        4_096,
    ),
    Refusal(
        "llama.cpp-old",
        400,
        openai(
            "the request exceeds the available context size. try increasing the context size or"
            " enable context shift"
        ),
    ),
    Refusal(
        "llama.cpp-while-answering",
        500,
        openai("Context size has been exceeded.", type="server_error", code=500),
    ),
    Refusal(
        "lm-studio",
        400,
        {
            "error": (
                "Trying to keep the first 5000 tokens when context the overflows. However, the"
                " model is loaded with context length of only 4096 tokens, which is not enough."
            )
        },
        4_096,
    ),
    Refusal(
        "lm-studio-old",
        400,
        {
            "error": (
                "The number of tokens to keep from the initial prompt is greater than the context"
                " length."
            )
        },
    ),
    Refusal(
        "deepseek",
        400,
        openai(
            f"{MOST} 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000"
            " in the completion).",
            code="invalid_request_error",
        ),
        65_536,
    ),
    Refusal(
        "dashscope",
        400,
        openai(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
            **DASHSCOPE,
        ),
        30_720,
    ),
    Refusal(
        "dashscope-native",
        400,
        {
            "code": "InvalidParameter",
            "message": "Range of input length should be [1, 6000]",
            "request_id": "x",
        },
        6_000,
    ),
    Refusal(
        "qwen-zh",
        400,
        openai("输入长度超过模型最大上下文长度，最大为 30720，当前 41234", **DASHSCOPE),
        30_720,
    ),
    Refusal("zh-too-long", 400, openai("输入内容过长，请缩短后重试", **DASHSCOPE)),
    Refusal(
        "zh-over-the-context",
        400,
        openai("请求的 token 数 70000 超出模型上下文限制 65536", code="invalid_parameter"),
        65_536,
    ),
    Refusal("zhipu", 400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    Refusal("ollama", 400, openai("the input length exceeds the context length")),
    Refusal(
        "ollama-cloud", 400, openai("prompt too long; exceeded max context length by 123 tokens")
    ),
    Refusal(
        "anthropic", 400, anthropic("prompt is too long: 213462 tokens > 200000 maximum"), 200_000
    ),
    Refusal(
        "anthropic-with-output",
        400,
        anthropic(
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease"
            " input length or `max_tokens` and try again"
        ),
        200_000,
    ),
    Refusal(
        "anthropic-body", 413, anthropic("Request exceeds the maximum size", "request_too_large")
    ),
    Refusal(
        "bedrock", 400, {"message": "ValidationException: Input is too long for requested model."}
    ),
    Refusal(
        "mistral",
        400,
        {
            "object": "error",
            "message": (
                "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768"
                " maximum context length"
            ),
            "type": "invalid_request_prompt",
            "code": "3051",
        },
        32_768,
    ),
    Refusal(
        "gemini",
        400,
        openai(
            "The input token count (1196265) exceeds the maximum number of tokens allowed"
            " (1048575).",
            code=400,
        ),
        1_048_575,
    ),
    Refusal(
        "vertex",
        400,
        openai(
            "Unable to submit request because the input token count is 33000 but model only"
            " supports up to 32768."
        ),
        32_768,
    ),
    Refusal(
        "xai",
        400,
        {
            "code": "invalid",
            "error": (
                "This model's maximum prompt length is 131072 but the request contains 537812"
                " tokens."
            ),
        },
        131_072,
    ),
    Refusal(
        "groq", 400, openai("Please reduce the length of the messages or completion.", code=CODE)
    ),
    Refusal(
        "groq-minute",
        413,
        openai(
            "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested"
            " 9000.",
            type="tokens",
            code="rate_limit_exceeded",
        ),
    ),
    Refusal(
        "openrouter",
        400,
        openai(
            "This endpoint's maximum context length is 32768 tokens. However, you requested about"
            " 42832 tokens (42832 of text input).",
            code=400,
        ),
        32_768,
    ),
    Refusal(
        "moonshot",
        400,
        openai("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)"),
        8_192,
    ),
    Refusal("minimax", 400, openai("invalid params, context window exceeds limit (2013)")),
    Refusal(
        "copilot",
        400,
        openai(
            "prompt token count of 70123 exceeds the limit of 64000",
            code="model_max_prompt_tokens_exceeded",
        ),
        64_000,
    ),
    Refusal(
        "fireworks",
        400,
        openai("The prompt is too long: 267657, model maximum context length: 262143"),
        262_143,
    ),
    Refusal("mlx", 400, openai("Prompt exceeds maximum context length")),
    Refusal(
        "cohere",
        400,
        {
            "message": (
                "too many tokens: total number of tokens in the prompt cannot exceed 4081 -"
                " received 5000."
            )
        },
        4_081,
    ),
    Refusal(
        "tgi",
        422,
        {
            "error": (
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given:"
                " 4000 `inputs` tokens and 500 `max_new_tokens`"
            )
        },
        4_096,
    ),
    Refusal(
        "tgi-input",
        422,
        {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500"},
        1_024,
    ),
    Refusal(
        "with-commas",
        400,
        openai(
            "This model's maximum context length is 1,048,576 tokens, your prompt has 1,200,000."
        ),
        1_048_576,
    ),
    Refusal("proxy", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
]

OTHERS = [
    Refusal(
        "rate-limit",
        429,
        openai(
            "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000.",
            code="rate_limit_exceeded",
        ),
    ),
    Refusal(
        "request-over-the-minute",
        429,
        openai(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
            type="tokens",
        ),
    ),
    Refusal(
        "anthropic-rate",
        429,
        anthropic(
            "This request would exceed the rate limit of 40,000 input tokens per minute.",
            "rate_limit_error",
        ),
    ),
    Refusal(
        "rate-limit-as-400",
        400,
        openai(
            "Too many tokens per minute: the input token limit of 40000 per minute was exceeded"
        ),
    ),
    Refusal("zh-rate", 400, openai("请求频率超过上下文服务限制，请稍后重试")),
    Refusal(
        "max-tokens",
        400,
        openai(
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens,"
            " whereas you provided 100000.",
            param="max_tokens",
            code="invalid_value",
        ),
    ),
    Refusal(
        "anthropic-max-tokens",
        400,
        anthropic(
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for"
            " this model"
        ),
    ),
    Refusal(
        "dashscope-max-tokens",
        400,
        openai(
            "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
            **DASHSCOPE,
        ),
    ),
    Refusal(
        "deepseek-max-tokens",
        400,
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    ),
    Refusal("zh-max-tokens", 400, openai("输入参数 max_tokens 超出范围 [1, 8192]", **DASHSCOPE)),
    Refusal(
        "vllm-max-tokens-alone",
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum"
            " context length is 4096 tokens and your request has 12 input tokens (32000 > 4096 -"
            " 12).",
            type="BadRequestError",
            code=400,
        ),
    ),
    Refusal(
        "openai-completion-alone",
        400,
        openai(
            f"{MOST} 4097 tokens. However, you requested 5012 tokens (12 in the messages, 5000 in"
            " the completion).",
            code=CODE,
        ),
    ),
    Refusal(
        "tools",
        400,
        openai(
            "Invalid 'tools[0].function.description': string too long. Expected a string with"
            " maximum length 1024.",
            code="string_above_max_length",
            param="tools[0].function.description",
        ),
    ),
    Refusal(
        "too-many-tools",
        400,
        openai(
            "Invalid 'tools': array too long. Expected an array with maximum length 128.",
            code="array_above_max_length",
            param="tools",
        ),
    ),
    Refusal(
        "call-id",
        400,
        openai(
            "Invalid 'messages[3].tool_calls[0].id': string too long. Expected maximum length 40.",
            code="string_above_max_length",
            param="messages[3].tool_calls[0].id",
        ),
    ),
    Refusal(
        "orphan-call",
        400,
        openai(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to"
            " each 'tool_call_id'.",
            param="messages.[2].role",
        ),
    ),
    Refusal(
        "content-filter",
        400,
        openai(
            "The response was filtered due to the prompt triggering Azure OpenAI's content"
            " management policy.",
            code="content_filter",
        ),
    ),
    Refusal(
        "dashscope-filter",
        400,
        openai(
            "Input data may contain inappropriate content.",
            type="data_inspection_failed",
            code="data_inspection_failed",
        ),
    ),
    Refusal("zh-filter", 400, openai("输入数据可能包含不当内容", code="data_inspection_failed")),
    Refusal(
        "image",
        400,
        openai("The request failed because the size of the input image exceeds the limit."),
    ),
    Refusal("temperature", 400, openai("temperature must be at most 2, got 3")),
    Refusal("balance", 402, openai("Insufficient Balance")),
    Refusal("key", 401, openai("Incorrect API key provided", code="invalid_api_key")),
    Refusal(
        "model",
        404,
        openai(
            "The model `x` with a context length of 8192 does not exist", code="model_not_found"
        ),
    ),
    Refusal("server-error", 500, openai("maximum context length service unavailable")),
    Refusal(
        "llama.cpp-batch",
        500,
        openai(
            "input is too large to process. increase the physical batch size",
            type="server_error",
            code=500,
        ),
    ),
]
