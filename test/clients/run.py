"""What the programs of the Python clients share.

A program gets its input as JSON in its first argument and prints one line of JSON for each case.
"""

import json
import sys
import traceback

INPUT = json.loads(sys.argv[1])

# What a client prints must not mix with the results.
RESULTS = sys.stdout
sys.stdout = sys.stderr

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER, "strict": True}}]
RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "person", "strict": True, "schema": PERSON},
}


def run(cases):
    """Runs the cases one after the other. A case that raises prints its error, and the others still run."""
    for play in cases:
        try:
            outcome = {"result": play()}
        except Exception:
            outcome = {"failure": traceback.format_exc()}
        print(json.dumps({"case": play.__name__, **outcome}), file=RESULTS, flush=True)


def refused(call, kind):
    """The error that `call` must end with. `kind` is the class of the client's errors."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("the call was not refused")


def joined(chunks):
    """Joins the chunks of one streamed choice: text, arguments of the tool call, finish reason, usage and model."""
    text, arguments, finish, usage, model = "", "", None, None, None
    for chunk in chunks:
        model = chunk.model or model
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                arguments += call.function.arguments or ""
            finish = choice.finish_reason or finish
    return text, arguments, finish, usage, model


def usage_of(usage):
    return {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
