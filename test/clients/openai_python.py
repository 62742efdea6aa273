import json

import openai
from run import INPUT, RESPONSE_FORMAT, TOOLS, joined, refused, run, usage_of


def client(key, max_retries=0, base_url=INPUT["baseUrl"]):
    return openai.OpenAI(base_url=base_url, api_key=key, max_retries=max_retries)


tollgate = client(INPUT["key"])
MESSAGES = [{"role": "user", "content": INPUT["prompt"]}]
ASKED = {"model": INPUT["model"], "messages": MESSAGES, "max_tokens": 20}
LONG = {**ASKED, "max_tokens": 200}


def chat():
    answer = tollgate.chat.completions.create(**ASKED)
    [choice] = answer.choices
    return {
        "text": choice.message.content,
        "finish": choice.finish_reason,
        "usage": usage_of(answer.usage),
        "model": answer.model,
    }


def stream():
    options = {"include_usage": True}
    text, _, finish, usage, model = joined(
        tollgate.chat.completions.create(**ASKED, stream=True, stream_options=options)
    )
    return {"text": text, "finish": finish, "usage": usage_of(usage), "model": model}


def tools():
    # Adds `parsed_arguments` to the call that is sent back below.
    plain = tollgate.chat.completions.parse(**LONG, tools=TOOLS)
    _, arguments, *_ = joined(tollgate.chat.completions.create(**LONG, tools=TOOLS, stream=True))
    message = plain.choices[0].message
    [call] = message.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": "12 degrees"}
    last = tollgate.chat.completions.create(**{**LONG, "messages": [*MESSAGES, message, result]}, tools=TOOLS)
    return {
        "name": call.function.name,
        "arguments": json.loads(call.function.arguments),
        "streamed": json.loads(arguments),
        "answer": last.choices[0].message.content,
    }


def structured():
    answer = tollgate.chat.completions.create(**LONG, response_format=RESPONSE_FORMAT)
    return json.loads(answer.choices[0].message.content)


def legacy():
    answer = tollgate.completions.create(model=INPUT["model"], prompt=INPUT["prompt"], max_tokens=20)
    return {"text": answer.choices[0].text, "usage": usage_of(answer.usage)}


def embeddings():
    answer = tollgate.embeddings.create(model=INPUT["embeddingModel"], input=["one", "two"])
    return {"vectors": [row.embedding for row in answer.data], "promptTokens": answer.usage.prompt_tokens}


def models():
    return {
        "list": [model.id for model in tollgate.models.list()],
        "retrieved": tollgate.models.retrieve(INPUT["model"]).id,
    }


def errors():
    def create(asker=tollgate, **fields):
        error = refused(lambda: asker.chat.completions.create(**{**ASKED, **fields}), openai.APIStatusError)
        return {"status": error.status_code, "code": error.code, "param": error.param, "message": error.message}

    return {
        "wrongKey": create(client("sk-svc-wrong")),
        "noCredit": create(client(INPUT["poorKey"])),
        "unknownModel": create(model="none"),
        "invalid": create(temperature=3),
    }


def retries():
    answer = client(INPUT["singleKey"], max_retries=6).chat.completions.create(**ASKED)
    return {"text": answer.choices[0].message.content}


def repeats():
    broken = client(INPUT["repeatedKey"], max_retries=2, base_url=INPUT["breakingUrl"])
    answer = broken.chat.completions.create(**ASKED, extra_headers={"Idempotency-Key": "once"})
    return {"text": answer.choices[0].message.content}


def abort():
    fields = {"model": INPUT["slowModel"], "messages": MESSAGES, "stream": True}
    with tollgate.chat.completions.create(**fields) as chunks:
        for chunk in chunks:
            if chunk.choices[0].delta.content:
                return {"text": chunk.choices[0].delta.content}


run([chat, stream, tools, structured, legacy, embeddings, models, errors, retries, repeats, abort])
