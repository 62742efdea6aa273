import json

import litellm
import openai
from run import INPUT, RESPONSE_FORMAT, TOOLS, joined, refused, run, usage_of


def asking(key=INPUT["key"], model=INPUT["model"], max_retries=0):
    """`openai/` is litellm's prefix for any server that speaks OpenAI's format."""
    return {"model": f"openai/{model}", "api_base": INPUT["baseUrl"], "api_key": key, "max_retries": max_retries}


MESSAGES = [{"role": "user", "content": INPUT["prompt"]}]
ASKED = {**asking(), "messages": MESSAGES, "max_tokens": 20}
LONG = {**ASKED, "max_tokens": 200}


def chat():
    answer = litellm.completion(**ASKED)
    [choice] = answer.choices
    return {
        "text": choice.message.content,
        "finish": choice.finish_reason,
        "usage": usage_of(answer.usage),
        "model": answer.model,
    }


def stream():
    text, _, finish, usage, model = joined(
        litellm.completion(**ASKED, stream=True, stream_options={"include_usage": True})
    )
    return {"text": text, "finish": finish, "usage": usage_of(usage), "model": model}


def tools():
    plain = litellm.completion(**LONG, tools=TOOLS)
    _, arguments, *_ = joined(litellm.completion(**LONG, tools=TOOLS, stream=True))
    message = plain.choices[0].message
    [call] = message.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": "12 degrees"}
    last = litellm.completion(**{**LONG, "messages": [*MESSAGES, message.model_dump(), result]}, tools=TOOLS)
    return {
        "name": call.function.name,
        "arguments": json.loads(call.function.arguments),
        "streamed": json.loads(arguments),
        "answer": last.choices[0].message.content,
    }


def structured():
    answer = litellm.completion(**LONG, response_format=RESPONSE_FORMAT)
    return json.loads(answer.choices[0].message.content)


def legacy():
    fields = {**asking(), "model": f"text-completion-openai/{INPUT['model']}"}
    answer = litellm.text_completion(**fields, prompt=INPUT["prompt"], max_tokens=20)
    return {"text": answer.choices[0].text, "usage": usage_of(answer.usage)}


def embeddings():
    answer = litellm.embedding(**asking(model=INPUT["embeddingModel"]), input=["one", "two"])
    return {"vectors": [row["embedding"] for row in answer.data], "promptTokens": answer.usage.prompt_tokens}


def errors():
    def complete(**fields):
        # litellm's own errors have OpenAI's as their base. They carry the gateway's code and parameter in the message.
        error = refused(lambda: litellm.completion(**{**ASKED, **fields}), openai.OpenAIError)
        return {"status": error.status_code, "code": None, "param": None, "message": str(error)}

    return {
        "wrongKey": complete(**asking("sk-svc-wrong")),
        "noCredit": complete(**asking(INPUT["poorKey"])),
        "unknownModel": complete(**asking(model="none")),
        "invalid": complete(temperature=3),
    }


def retries():
    answer = litellm.completion(**{**ASKED, **asking(INPUT["singleKey"], max_retries=6)})
    return {"text": answer.choices[0].message.content}


def repeats():
    broken = {**asking(INPUT["repeatedKey"], max_retries=2), "api_base": INPUT["breakingUrl"]}
    answer = litellm.completion(**{**ASKED, **broken}, extra_headers={"Idempotency-Key": "once"})
    return {"text": answer.choices[0].message.content}


def abort():
    fields = {**asking(model=INPUT["slowModel"]), "messages": MESSAGES, "stream": True}
    chunks = litellm.completion(**fields)
    for chunk in chunks:
        if chunk.choices[0].delta.content:
            chunks.completion_stream.response.close()
            return {"text": chunk.choices[0].delta.content}


run([chat, stream, tools, structured, legacy, embeddings, errors, retries, repeats, abort])
