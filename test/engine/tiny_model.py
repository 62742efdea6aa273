"""Writes a GGUF file with a tiny model of the Llama architecture and random weights.

Its tokens are bytes and a few words, so it can produce any text, and the text means nothing.
"""

import gguf
import numpy

VOCABULARY_BYTES = 256
WORDS = ["▁the", "▁a", "▁of", "▁gateway", "▁token", "▁ledger", "▁hold", "▁credit", "ing", "er", "▁"]
WIDTH, LAYERS, HEADS, FEED_FORWARD, CONTEXT = 64, 2, 4, 128, 4_096
SEED = 20_261_122
CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def write(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    count = add_tokenizer(writer)
    writer.add_vocab_size(count)
    add_weights(writer, count)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer):
    """SentencePiece with a token for each byte. Returns the number of tokens."""
    kind = gguf.TokenType
    tokens = [("<unk>", kind.UNKNOWN), ("<s>", kind.CONTROL), ("</s>", kind.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kind.BYTE) for byte in range(VOCABULARY_BYTES)]
    tokens += [(word, kind.NORMAL) for word in WORDS]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_scores([0.0 if type != kind.NORMAL else -1.0 for _, type in tokens])
    writer.add_token_types([type for _, type in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHAT_TEMPLATE)
    return len(tokens)


def add_weights(writer, vocabulary):
    random = numpy.random.default_rng(SEED)

    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / numpy.sqrt(columns)).astype(numpy.float32)

    ones = numpy.ones(WIDTH, dtype=numpy.float32)
    writer.add_tensor("token_embd.weight", matrix(vocabulary, WIDTH))
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        writer.add_tensor(f"{block}.attn_norm.weight", ones)
        for part in ("q", "k", "v", "output"):
            writer.add_tensor(f"{block}.attn_{part}.weight", matrix(WIDTH, WIDTH))
        writer.add_tensor(f"{block}.ffn_norm.weight", ones)
        writer.add_tensor(f"{block}.ffn_gate.weight", matrix(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{block}.ffn_up.weight", matrix(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{block}.ffn_down.weight", matrix(WIDTH, FEED_FORWARD))
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", matrix(vocabulary, WIDTH))
